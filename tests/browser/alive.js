// Whatever of a foreign text has become more than text: a list of what is wrong.
const bad = [];
const own = (one) => one.closest('head') || ['skip', 'row'].some((name) => one.classList.contains(name));
const kinds = 'script, iframe, object, embed, base, form, style, link, meta, img, image, video';
for (const one of document.querySelectorAll(kinds)) {
  if (!own(one) && !one.matches('form.controls, form.correct, form.label, #help form')) bad.push(one.outerHTML.slice(0, 200));
}
for (const one of document.querySelectorAll('*')) {
  for (const {name, value} of one.attributes) {
    if (/^on/i.test(name)) bad.push(name);
    if (/^(href|src|action|xlink:href)$/.test(name) && !/^(\/(?!\/)|#main$)/.test(value)) bad.push(name + '=' + value);
  }
}
for (const one of document.querySelectorAll('main .text')) {
  if (/[\u202a-\u202e\u2066-\u2069\u001b\u0000]/.test(one.textContent)) bad.push('a character acts');
  const box = one.getBoundingClientRect();
  if (box.right > document.documentElement.clientWidth + 1) bad.push('a text leaves the page');
  for (const formula of one.querySelectorAll('.formula.set')) {
    const inner = formula.getBoundingClientRect();
    if (inner.right > box.right + 2 || inner.left < box.left - 2) bad.push('a formula leaves its text');
  }
}
if (document.title === 'hacked') bad.push('title');
return bad;
