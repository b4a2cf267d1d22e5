// aimock draws its faults by Math.random. Multiples of the golden ratio are spread evenly, so that every run meets
// as many faults as the rate says, and never a long row of them.
let last = 0;
Math.random = () => (last = (last + 0.6180339887498949) % 1);
