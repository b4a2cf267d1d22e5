"""One answer in many spellings, and answers that differ from it: a kind a name, from a source of randomness.

What the documentation makes equal by convention (`50%` and `50`, `5 cm` and `5`) is not among the answers that differ.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from fractions import Fraction
from random import Random

FORMS = r"""
fractions: @s(v)@ | @s(v)@ | @s(v)@ ~ @s(m)@ | @s(v + 1)@ | @s(-v or 9)@
mixed numbers: @a@\frac{@n@}{@n + k@} | @a@ @n@/@n + k@ | \frac{@a * (n + k) + n@}{@n + k@} | @a@+@n@/@n + k@
    ~ @a + 1@\frac{@n@}{@n + k@} | \frac{@a * n@}{@n + k@} | @a@ @n@/@n + k + 1@
thousands: @N@ | @g(',')@ | @g('{,}')@ | @g('\\,')@ | @g(' ')@ | @g('~')@ | @g('\\ ')@ ~ @N + 1@ | @N // 1000@ | @N@,000
scientific: @p@\times 10^{@k - 5@} | @p@\cdot10^{@k - 5@} | @p@e@k - 5@ | @p@E@f'{k - 5:+d}'@ | @p@ × 10^{@k - 5@}
    | @dec(p * Fraction(10) ** (k - 5))@ | @dec(p * 10)@*10^(@k - 6@)
    ~ @p@\times 10^{@k - 4@} | @p@e@k - 6@ | @p + 1@e@k - 5@ | -@p@e@k - 5@
percent: @p@\% | @p@% | @p@\text{ percent} | @p@ percent | @dec(p / 100)@ ~ @p + 1@\% | @dec(p / 10)@ | -@p@%
    | @dec(p * 10)@%
degrees: @a@^\circ | @a@^{\circ} | @a@° | @a@\text{ degrees} | @a@ degrees | \frac{@a@\pi}{180} | @a@π/180
    ~ @a + 1@^\circ | \frac{@a + 1@\pi}{180} | -@a@^\circ | @a@\%
multiples of π: \frac{@a@\pi}{@n@} | \frac{@a@}{@n@}\pi | @a@π/@n@ | \pi\cdot\frac{@a * k@}{@n * k@} | @a@\pi/@n@
    ~ \frac{@a + 1@\pi}{@n@} | \frac{@a@}{@n@} | \frac{@a@\pi^2}{@n@} | \frac{@a@\pi}{@n + 1@}
order of sums: @a@x^2-@b@xy+@n@ | @n@+@a@x^2-@b@yx | -@b@xy+@n@+@a@x^2 ~ @a@x^2+@b@xy+@n@ | @a@x^2-@b + 1@xy+@n@
    | @a@x-@b@xy+@n@
factors: @n@(x+@a@)(x-@b@) | (x-@b@)\cdot @n@(@a@+x) | @n@x^2+@n * (a - b)@x-@n * a * b@ | -@n@(@b@-x)(x+@a@)
    ~ @n@(x-@a@)(x+@b@) | @n@(x+@a@)(x-@b + 1@) | @n + 1@(x+@a@)(x-@b@) | (x+@a@)(x-@b@)^@n@
brackets: @a@\sqrt{7}-@b@ | (@a@\sqrt{7}-@b@) | (@a@\sqrt{7})-(@b@) | {@a@\sqrt{7}}-{@b@} | -(@b@-@a@\sqrt{7})
    ~ @a@(\sqrt{7}-@b@) | -(@b@+@a@\sqrt{7}) | @a@\sqrt{7-@b@}
sets: \{@s(v)@, @s(w)@, @s(u)@\} | \{@s(u)@, @s(v)@, @s(w)@\} | @s(w)@, @s(v)@, @s(u)@
    | \{@s(v)@, @s(v)@, @s(w)@, @s(u)@\}
    ~ \{@s(v)@, @s(w)@\} | \{@s(v)@, @s(w)@, @s(m)@\} | \{@s(v)@, @s(w)@, @s(u)@, @s(m)@\}
tuples: (@s(v)@, @s(w)@) | (@s(v)@,@s(w)@) | P(@s(v)@, @s(w)@) | ( @s(v)@ , @s(w)@ )
    ~ (@s(w)@, @s(v)@) | (@s(v)@, @s(m)@) | (@s(v)@, @s(w)@, @s(u)@) | (@s(-v - 1)@, @s(w)@)
intervals: [@s(v)@, @s(w)@) | @s(v)@\le x<@s(w)@ | @s(w)@>x\ge @s(v)@ | x\in[@s(v)@, @s(w)@) | [@s(v)@, @s(w)@[
    ~ (@s(v)@, @s(w)@) | [@s(v)@, @s(w)@] | @s(v)@<x\le @s(w)@ | [@s(v)@, @s(m)@)
unions: (-\infty, @a@)\cup[@b@, \infty) | [@b@, \infty)\cup(-\infty, @a@) | x<@a@\text{ or }x\ge @b@ | @a@>x or @b@<=x
    ~ (-\infty, @a@]\cup[@b@, \infty) | [@b@, \infty) | @a@<x\le @b@ | (-\infty, @a@)\cup[@b + 1@, \infty)
matrices: \begin{pmatrix} @s(v)@ & @s(w)@ \\ @a@ & @s(u)@ \end{pmatrix}
    | \begin{bmatrix}@s(v)@&@s(w)@\\@a@&@s(u)@\end{bmatrix}
    | \begin{pmatrix} @s(v)@ & @s(w)@ \\[4pt] @a@ & @s(u)@ \end{pmatrix} | [[@v@, @w@], [@a@, @u@]]
    ~ \begin{pmatrix} @s(w)@ & @s(v)@ \\ @a@ & @s(u)@ \end{pmatrix} | [[@v@, @w@], [@a + 1@, @u@]]
    | [[@v@, @w@, @a@, @u@]]
units converted: @unit()@ | @unit()@ | @unit()@ ~ @unit(2)@ | @unit(Fraction(11, 10))@ | @unit(-1)@ | @stranger()@
letters as units: @letters()@ | @upright()@ ~ @letters(1)@ | @upright(1)@
temperatures: @a@^\circ\text{C} | @a@ °C | @a + 273@.15\text{ K} | @dec(Fraction(9 * a, 5) + 32)@^\circ\text{F}
    ~ @a + 1@ °C | @a@ °F | @a + 20@.15\text{ K} | @a@\text{ K}
times of day: @n@:@a + 25@ p.m. | @n + 12@:@a + 25@ | @n@:@a + 25@\text{ PM} | @n + 12@{:}@a + 25@
    ~ @n@:@a + 26@ p.m. | @n@:@a + 25@ a.m. | @n@\text{ PM}
chemical formulas: C_{@n@}H_{@b@} | \text{C}_@n@\text{H}_{@b@} | C@n@H@b@ | \ce{C@n@H@b@} | \mathrm{C_@n@H_{@b@}}
    ~ C_{@n + 1@}H_{@b@} | \text{C}_@n@\text{H}_{@b + 1@} | C@n@O@b@ | \ce{CH@b@}
determinants: \begin{vmatrix}@a@&@n@\\@k@&@b@\end{vmatrix} | @a * b - n * k@ | @a@\cdot@b@-@n@\cdot@k@
    ~ @a * b + n * k@ | \begin{vmatrix}@a@&@n@\\@k@&@b + 1@\end{vmatrix} | @a * b - n * k + 1@
large powers: @n@^{@b@^{@k + 9@^{99}}}-@a@ | @n@^{(@b@^{@k + 9@^{99}})}-@a@
    ~ @n@^{@b@^{@k + 9@^{98}}}-@a@ | @n@^{@b + 1@^{@k + 9@^{99}}}-@a@ | @N@
money: \$@a@ | $@a@ | @a@ dollars | \$@a@.00 | @a@\text{ dollars} | @a@ USD | @a@00\text{ cents} ~ \$@a + 1@
    | @a@ cents | €@a@
radicals: @n@\sqrt{@r@} | \sqrt{@n * n * r@} | @n@\cdot@r@^{1/2} | \frac{@n * r@}{\sqrt{@r@}} | @n@√@r@ | @n@sqrt(@r@)
    ~ @n + 1@\sqrt{@r@} | \sqrt{@n * r@} | @n@\sqrt[3]{@r@} | -@n@\sqrt{@r@}
rationalized: \frac{@n@}{\sqrt{@b@}-\sqrt{@a@}} | \frac{@n@(\sqrt{@b@}+\sqrt{@a@})}{@b - a@}
    | \frac{@n@}{@b - a@}(\sqrt{@a@}+\sqrt{@b@})
    ~ \frac{@n@}{\sqrt{@b@}+\sqrt{@a@}} | \frac{@n@(\sqrt{@b@}-\sqrt{@a@})}{@b - a@}
logarithms: \ln @a * b@ | \ln @a@+\ln @b@ | \ln(@a@\cdot@b@) | \ln\frac{@a * b * n@}{@n@} ~ \ln @a * b + 1@
    | \ln @a@\cdot\ln @b@ | \ln(@a@+@a * b@)
logarithms: \log_@n@ @b + 9@ | \frac{\ln @b + 9@}{\ln @n@} | \log_{@n * n@}(@(b + 9) ** 2@)
    | \frac{\log_2 @b + 9@}{\log_2 @n@}
    ~ \log_@n@ @b + 10@ | \frac{\ln @n@}{\ln @b + 9@} | \ln @b + 9@-\ln @n@
exponents: @x@^{@n + k@} | @x@^@n@@x@^{@k@} | \frac{@x@^{@n + 2 * k@}}{@x@^{@k@}} ~ @x@^{@n + k + 1@} | @n + k@@x@
    | @x@^{@n * k + 9@}
exponents: @x@^{-@n@} | \frac{1}{@x@^@n@} | 1/@x@^@n@ | (@x@^@n@)^{-1} ~ -@x@^@n@ | @x@^{1/@n@} | \frac{@n@}{@x@}
exponents: \sqrt{@x@} | @x@^{1/2} | @x@^{0.5} | @x@^{\frac{1}{2}} ~ \sqrt[3]{@x@} | @x@^{1/4} | @x@^{-1/2}
exponents: 2^{@n@@x@} | @2 ** n@^@x@ | (2^@x@)^@n@ | 2^{@n - 1@@x@}2^@x@ ~ 2^{@n@+@x@} | 2^{@n + 1@@x@}
    | @2 * n + 1@^@x@
complex: @a@-@b@i | @a@-@b@j | -@b@i+@a@ | @a@ - i\cdot @b@ | -(@b@i-@a@) | \frac{@2 * a@-@2 * b@i}{2} | @b@i^3+@a@
    | @a@-@b@\mathrm{i}
    ~ @a@+@b@i | @a@+@b@j | @b@-@a@i | @a + 1@-@b@i | @a@-@b@ | -@a@-@b@i
rational functions: \frac{1}{x+@a@}+\frac{1}{x+@b@} | \frac{2x+@a + b@}{(x+@a@)(x+@b@)}
    | (2x+@a + b@)/(x^2+@a + b@x+@a * b@)
    ~ \frac{2x+@a + b + 1@}{(x+@a@)(x+@b@)} | \frac{2}{(x+@a@)(x+@b@)} | \frac{1}{x+@a@}-\frac{1}{x+@b@}
trigonometry: \sin @2 * n@x | 2\sin @n@x\cos @n@x | 2\cos(@n@x)\sin(@n@x) ~ 2\sin @n@x | \cos @2 * n@x | -\sin(@2 * n@x)
trigonometry: \cos @2 * n@x | 1-2\sin^2 @n@x | 2\cos^2(@n@x)-1 ~ 1-\sin^2 @n@x | 2\cos @n@x-1 | \cos^2 @2 * n@x
equations: y=@a@x-@b@ | y = -@b@+@a@x | @a@x-y-@b@=0 | y+@b@=@a@x | 2y=@2 * a@x-@2 * b@ | @a@x-@b@=y
    ~ y=@a@x+@b@ | y=@a + 1@x-@b@ | @a@x+y-@b@=0 | y=-@a@x-@b@
named values: @s(v)@ | @x@=@s(v)@ | @x@ = @s(v)@ ~ @x@=@s(m)@ | @x@ \ne @s(v)@ | @x@>@s(v)@ | @x@=@s(v + 1)@
named values: @s(v)@ | S_n=@s(v)@ | S_n = @s(v)@ ~ S_n=@s(m)@ | S_n>@s(v)@ | S_n=@s(v + 1)@
ratios: @a@:@b + 60@ | @a@ : @b + 60@ | @n * a@:@n * (b + 60)@ | @a@ to @b + 60@ | \frac{@a * n@}{@(b + 60) * n@}
    ~ @b + 60@:@a@ | @a@:@b + 61@ | @a@:@b + 60@:1
repeating decimals: 0.\overline{@a + 9@} | 0.@a + 9@@a + 9@@a + 9@... | 0.(@a + 9@)
    | \frac{@a + 9@}{99} | 0.@a + 9@\overline{@a + 9@}
    ~ 0.@a + 9@ | \frac{@a + 10@}{99} | 1.(@a + 9@)
plus or minus: @a@\pm\sqrt{@r@} | @a@+\sqrt{@r@}, @a@-\sqrt{@r@} | x=@a@-\sqrt{@r@}, x=@a@+\sqrt{@r@}
    | \{@a@+\sqrt{@r@}, @a@-\sqrt{@r@}\}
    ~ @a@+\sqrt{@r@} | @a + 1@\pm\sqrt{@r@} | @a@\pm\sqrt{@r + 20@} | \{@a@+\sqrt{@r@}, -@a@-\sqrt{@r@}\}
counts: \binom{@b + 9@}{@k@} | @math.comb(b + 9, k)@ | \binom{@b + 9@}{@b + 9 - k@}
    | \frac{@b + 9@!}{@k@!\,(@b + 9 - k@)!}
    ~ \binom{@b + 10@}{@k@} | \frac{@b + 9@!}{@k@!} | @math.comb(b + 9, k) + 1@
"""
"""Lines "kind: spelling | … ~ other | …"; a line that is indented goes on with the line above. @…@ is computed."""

UNITS = """
length: km 1000, m 1, cm 1/100, mm 1/1000, 米 1, 厘米 1/100, meters 1
mass: kg 1000, g 1, mg 1/1000, t 1000000
time: h 3600, min 60, s 1, ms 1/1000, hours 3600, minutes 60, d 86400
area: m^2 1, cm^2 1/10000, square meters 1, ha 10000, 平方米 1
speed: m/s 1, km/h 5/18, cm/s 1/100, meters per second 1
pressure: Pa 1, kPa 1000, MPa 1000000, bar 100000, mbar 100, N/m^2 1, atm 101325
energy: J 1, kJ 1000, kWh 3600000, N·m 1, cal 4184/1000
volume: L 1, mL 1/1000, cm^3 1/1000, liters 1
charge: C 1, mC 1/1000, A·h 3600
radiation: Gy 1, mGy 1/1000, J/kg 1
miles: mi 1, miles 1, yd 1/1760, ft 1/5280
unknown: zorp 1
unknown letters: zp 1
"""
LAYOUTS = [
    (r"\\frac", r"\\dfrac"), (r"\\frac", r"\\tfrac"), (r"\\cdot ?", r"\\times "),
    (r"(?<![.\w])\((.*?)\)", r"\\left(\1\\right)"),
    (r"(?<!\\) ", r"\\,"), (r"(?<!\\) ", r"\\;"), (r"(?<=[,=+<>]) ", "  "), (r"-", "−"),
    (r"(?<=[\dx}])([+=<>])(?!=)", r" \1 "),
    (r"\\sqrt(?!\[)", r"\\sqrt "), (r"\^(\d)(?!\d)", r"^{\1}"), (r"\^\{(\d)\}", r"^\1"), (r"(?s)\A(.*)\Z", r"$\1$"),
    (r"(?s)\A(.*)\Z", r"\\displaystyle \1"), (r"(?s)\A(.*)\Z", r"\1."), (r"\\le ", "≤ "),
    (r"\\pi", "π"), (r"\\text", r"\\textrm"), (r"\\text\{", r"\\mbox{"), (r"\\infty", "∞"), (r"\\cup", "∪"),
]  # fmt: skip
"""(what is typeset in another way, how)."""


def _kinds() -> dict[str, list[tuple[list[str], list[str]]]]:
    kinds: dict[str, list[tuple[list[str], list[str]]]] = defaultdict(list)
    for line in FORMS.replace("\n    ", " ").strip().splitlines():
        name, forms = line.split(": ", 1)
        spellings, others = (part.split(" | ") for part in forms.split(" ~ "))
        kinds[name].append(([form.strip() for form in spellings], [form.strip() for form in others]))
    return kinds


KINDS = _kinds()
"""Name of a kind → its groups of (spellings of one answer, answers that differ)."""


class Case:
    """One answer of a kind."""

    def __init__(self, kind: str, seed: str) -> None:
        self.draw = d = Random(f"{kind} {seed}")
        self.spellings, self.others = d.choice(KINDS[kind])
        quantity = d.choice([line.partition(": ")[2] for line in UNITS.strip().splitlines()])
        self.units = {unit: Fraction(size) for unit, size in (each.rsplit(" ", 1) for each in quantity.split(", "))}
        self.size = d.choice([1, 2, 5, 12, 36, 400]) * d.choice([*self.units.values()])
        symbols = re.findall(r"[:,] ([A-Za-z/]+) \d", UNITS)
        self.symbol, self.number = d.choice(symbols), d.randint(2, 900)
        v, w, u, m = sorted({Fraction(d.randint(-300, 300), d.choice([1, 2, 3, 4, 5, 8, 20])) for _ in range(9)})[:4]
        a, b = sorted(d.sample(range(2, 30), 2))
        x, y = d.sample("ackpqruvwxyz", 2)
        self.values = {
            "v": v, "w": w, "u": u, "m": m, "a": a, "b": b, "x": x, "y": y, "n": d.randint(3, 9), "k": d.randint(2, 9),
            "N": d.randint(1_000, 10 ** d.randint(4, 12)), "p": d.randint(1, 9) + Fraction(d.randint(1, 99), 100),
            "r": d.choice([2, 3, 5, 6, 7, 10, 11, 13]), "s": self.number_as, "dec": decimal, "unit": self.quantity,
            "g": lambda mark: f"{self.values['N']:,}".replace(",", mark), "letters": self.letters, "math": math,
            "upright": self.upright, "stranger": self.stranger, "Fraction": Fraction,
        }  # fmt: skip

    def written(self, form: str) -> str:
        """The answer of a form, whose @…@ are computed."""

        def value(match: re.Match[str]) -> str:
            computed = eval(match[1], {}, self.values)
            return decimal(computed) if isinstance(computed, Fraction) and match[1][0] == "p" else str(computed)

        return re.sub("@([^@]+)@", value, form)

    def pair(self) -> tuple[str, str]:
        """Two spellings, the second perhaps typeset in other ways."""
        first, second = map(self.written, self.draw.sample(self.spellings, 2))
        for pattern, other in self.draw.sample(LAYOUTS, self.draw.randint(0, 3)):
            second = re.sub(pattern, other, second)
        return first, second

    def different(self) -> tuple[str, str]:
        """A spelling and an answer that differs, in any order."""
        pair = [self.written(self.draw.choice(forms)) for forms in (self.spellings, self.others)]
        return (pair[0], pair[1]) if self.draw.random() < 0.5 else (pair[1], pair[0])

    def number_as(self, value: Fraction | int) -> str:
        """A spelling of the value as a number."""
        value, times = Fraction(value), self.draw.choice([1, 2, 3, 10])
        top, bottom, sign = abs(value.numerator) * times, value.denominator * times, "-" if value < 0 else ""
        forms = [rf"{sign}\frac{{{top}}}{{{bottom}}}", f"{sign}{top}/{bottom}"]
        if 10**9 % value.denominator == 0:
            forms += [decimal(value)] * 2 + [decimal(value) + ("0" if value.denominator > 1 else ".0")]
        return self.draw.choice(forms)

    def upright(self, more: int = 0) -> str:
        """The number with its unit set upright."""
        return self.with_unit(str(self.number + more), self.symbol)

    def letters(self, more: int = 0) -> str:
        """The number with its unit as plain letters."""
        return self.draw.choice(["{} {}", "{}{}", r"{}\,{}", r"{}\ {}"]).format(self.number + more, self.symbol)

    def quantity(self, times: Fraction | int = 1) -> str:
        """The quantity, or a multiple of it, in one of its units."""
        unit = self.draw.choice([*self.units])
        return self.with_unit(self.number_as(self.size * times / self.units[unit]), unit)

    def stranger(self) -> str:
        """As many units of something else."""
        return self.with_unit(self.number_as(self.size), "K" if "K" not in self.units else "V")

    def with_unit(self, number: str, unit: str) -> str:
        spelling = self.draw.choice([r"{}\text{{ {}}}", r"{}\,\mathrm{{{}}}", r"{}\ \text{{{}}}"])
        return spelling.format(number, unit if "mathrm" not in spelling else unit.replace("·", r"\cdot "))


def decimal(value: Fraction) -> str:
    """The digits of a value whose denominator divides a power of ten."""
    places = next(n for n in range(40) if 10**n % value.denominator == 0)
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
    return ("-" if value < 0 else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
