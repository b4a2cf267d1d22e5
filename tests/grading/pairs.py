r"""Pairs of answers by category: (reference, answer, equal). Made for these tests; each row follows from a rule in docs/grading.md."""

PAIRS: dict[str, list[tuple[str, str, bool]]] = {
    "integer": [
        ("17", "17", True), ("17", "18", False), ("017", "17", True), ("17", "+17", True), ("-4", "-4", True),
        ("-4", "4", False), ("0", "-0", True), ("1000000007", "1000000008", False), ("3^4", "81", True),
        ("2^{64}", "18446744073709551616", True), ("2^{64}", "18446744073709551615", False), ("10!", "3628800", True),
        ("5!", "120", True), (r"\binom{6}{2}", "15", True), ("C(6,2)", "15", True), (r"C_6^2", "15", True),
        (r"{6 \choose 2}", "15", True), ("4 \\cdot 25", "100", True), ("4*25", "100", True), ("12", "12.0", True),
        ("12", "12.", True), ("7", "7.01", False), ("2**10", "1024", True), (r"2^{25} \cdot 26!", r"26! \cdot 2^{25}", True),
        ("100!", "99! \\cdot 100", True), ("100!", "101!", False), (r"\frac{100!}{98!}", "9900", True),
        (r"\gcd(12, 18)", "6", True), (r"17 \bmod 5", "2", True), ("1 234", "1234", True), ("56", "5 6", False),
        ("2^{31}", "2^{31}-1", False), ("999999999999", "1000000000000", False), ("6", "\\text{six}", False),
        (r"\sum_{k=1}^{10} k", "55", True), (r"\prod_{k=1}^{5} k", "120", True), ("42", "\\mathbf{42}", True),
        ("42", "$42$.", True), ("42", "\\text{42}", True), ("42", "\\mathrm{42}", True), ("42", "**42**", False),
    ],
    "fraction": [
        (r"\frac{3}{4}", "3/4", True), (r"\frac{3}{4}", r"\dfrac34", True), (r"\frac34", r"\frac{6}{8}", True),
        (r"\frac{3}{4}", r"-\frac{3}{4}", False), (r"-\frac{3}{4}", r"\frac{3}{-4}", True), (r"\frac{3}{4}", r"\frac{4}{3}", False),
        (r"\frac{3}{4}", "¾", True), (r"\frac{3}{4}", r"{3\over4}", True), (r"\frac{3}{4}", r"3 \div 4", True),
        (r"\frac{3}{4}", "3⁄4", True), (r"\frac{a}{b}", "a/b", True), (r"\frac{a}{b}", "b/a", False),
        (r"\frac{1}{2}\cdot\frac{3}{5}", r"\frac{3}{10}", True), (r"\cfrac{1}{3}", r"\tfrac13", True), (r"\frac{22}{7}", "22/7", True),
        (r"\frac{22}{7}", "3.142857", False), ("1/2/3", "1/6", True), (r"\frac{1}{\frac{2}{3}}", "3/2", True), (r"\frac ab", r"\frac{a}{b}", True),
        ("-1./3", r"-\frac13", True), (r"\frac{0}{5}", "0", True), ("(3)/(4)", "0.75", True), (r"\frac{355}{113}", r"\frac{355}{114}", False),
        (r"\frac{11}{36}", r"\text{11/36}", True), (r"\left(\frac{1}{2}\right)", r"\frac{1}{2}", True), (r"\frac{3}{4}", r"\frac{ 3 }{ 4 }", True),
    ],
    "mixed_number": [
        (r"2\frac{1}{3}", r"\frac{7}{3}", True), (r"2\frac{1}{3}", r"\frac{2}{3}", False), ("2 1/3", r"\frac73", True), ("2½", "2.5", True),
        (r"-1\frac{1}{2}", "-1.5", True), (r"-1\frac{1}{2}", "-0.5", False), (r"137 \frac{1}{2}", "137.5", True), (r"1\frac{4}{5}", "9/5", True),
        (r"1\frac{4}{5}", "4/5", False), (r"2\cdot\frac{1}{3}", r"\frac23", True), (r"x\frac{1}{2}", r"\frac{x}{2}", True), ("7 3/11", "80/11", True),
        (r"96\frac{4}{11}", r"96 \frac{4}{11}", True),
    ],
    "decimal": [
        ("0.75", "3/4", True), (".5", "0.5", True), ("0.5", "0.50", True), ("0.5", "5", False), ("2.0", "2", True), ("0.125", r"\frac18", True),
        ("3.14", r"\pi", False), (r"\pi", "3.14", False), (r"\pi", "3.14159265", False), (r"\frac{2}{3}", "0.67", False), ("0.67", r"\frac23", False),
        (r"\frac{2}{3}", "0.6667", False), (r"\sqrt{2}", "1.414", False), (r"\sqrt{2}", "1.41421356", False), ("1", "0.99999", False), ("0.1", "0.01", False),
        (r"e", "2.718", False), ("1.25", "1.250", True), ("326.5", "326,5", False), ("-0.5", "-.5", True), ("0.25", "25", False), ("0.1+0.2", "0.3", True),
        ("0.30000000000000004", "0.3", False), (r"\frac{1}{7}", "0.14285714285714285", True), ("2.5", "2\\frac12", True), ("1.0", "1.00", True),
    ],
    "repeating_decimal": [
        (r"\frac{2}{3}", r"0.\overline{6}", True), (r"\frac{1}{7}", r"0.\overline{142857}", True), (r"\frac{1}{3}", "0.333...", True),
        (r"\frac{1}{3}", r"0.333\ldots", True), (r"\frac{1}{3}", "0.(3)", True), (r"\frac{1}{3}", r"0.\dot{3}", True), (r"\frac{1}{6}", r"0.1\bar{6}", True),
        (r"0.\overline{9}", "1", True), (r"\frac{1}{3}", r"0.\overline{4}", False), (r"0.\overline{3}", "0.3", False), (r"\frac{4}{33}", r"0.\overline{12}", True),
        (r"\frac{1}{7}", r"0.\dot{1}4285\dot{7}", True), (r"\frac{1}{3}", "0.33…", False), (r"1.\overline{3}", r"\frac43", True), (r"\frac{1}{11}", r"0.\overline{09}", True),
    ],
    "rounding": [
        ("17.3", "17.34", False), (r"\sqrt{3}", r"\sqrt{3}\approx 1.732", True), (r"\sqrt{3}", r"1.732", False), (r"12\pi", r"12\pi \approx 37.7", True),
        ("5", r"\approx 5", True), ("5", r"\approx 4.9", False), (r"\frac{1+\sqrt{5}}{2}", r"\frac{1+\sqrt5}{2} \approx 1.618", True), ("6.0", "6.1", False),
        ("4.5e33", "4.5 \\times 10^{33}", True), ("1.32", "1.323", False), (r"\frac{6}{7} \approx 0.857", r"\frac67", True), ("x \\approx 3", "3", True),
        (r"\sqrt{2}", r"1.4 \approx \sqrt{2}", True),
    ],
    "percent": [
        (r"25\%", "25%", True), (r"25\%", "25", True), (r"25\%", "0.25", True), (r"25\%", r"\frac14", True), ("25", "0.25", False), ("0.25", "25", False),
        (r"25\%", "2.5", False), (r"25\%", r"26\%", False), ("0.25", r"25\%", True), (r"25\%", r"25\text{ percent}", True), (r"25\%", "25 percent", True), ("8 \\%", r"8\%", True),
        (r"33\frac{1}{3}\%", r"\frac13", True), ("1", r"100\%", True), ("100", r"100\%", True), ("12", r"1200\%", True), (r"0.5\%", "0.5", True), (r"0.5\%", "0.005", True), ("5", "0.05", False), ("17.5%", r"17.5\%", True),
        (r"50\%", "5000", False), ("50", r"0.5\%", False),
    ],
    "unit": [
        (r"12\text{ m}", "12", True), ("12", r"12\text{ m}", True), (r"12\text{ m}", r"12\text{ cm}", False), (r"12\text{ m}", r"12\text{ meters}", True),
        (r"12\text{ m}", r"1200\text{ cm}", True), (r"60\text{ minutes}", r"1\text{ hour}", True), (r"60\text{ minutes}", r"60\text{ seconds}", False), (r"12", r"12\,\mathrm{km/h}", True),
        (r"12\text{ cm}^2", r"12\text{ cm}", False), (r"12\text{ cm}^2", r"12\text{ square centimeters}", True), (r"12\text{ cm}^2", r"12\ \mathrm{cm^2}", True), ("12", r"12\text{ square feet}", True),
        (r"12\text{ cm}^2", r"12\text{ cm}^3", False), ("12", r"13\text{ cm}", False), ("30", r"30\text{ apples}", True), ("30", "30 apples", True), ("3m", "3", False), ("3k", "3", False), ("5", "5x", False), ("5n", "5", False),
        ("40", r"40\text{ mph}", True), (r"2\text{ kg}", r"2000\text{ g}", True), (r"15\mbox{ cm}^2", "15", True), (r"864 \mbox{ inches}^2", r"864\text{ in}^2", True), (r"\frac{270}7\text{ degrees}", r"\frac{270}{7}", True), ("10", r"10\text{ units}", True),
        ("10", r"10\text{ square units}", True), ("7", r"7\text{ boys and }3\text{ girls}", False), ("5", r"5\text{ or }6", False), (r"3\text{ ft}", r"36\text{ in}", True), (r"3\text{ ft}", r"3\text{ in}", False), ("100", r"100\ \text{cm}", True), (r"12\text{ feet}", r"12\text{ ft}", True),
        (r"5\text{ km}", r"5\text{ miles}", False), ("25", r"25^{\text{th}}", True), (r"\text{5 cm}", "5", True), ("5 cm", "5", True), ("5 cm", "5 m", False), ("12 inches", "12", True), (r"\sqrt{3}\text{ cm}", r"\sqrt{3}", True), (r"8\pi\text{ cm}", r"8\pi", True), ("9.8", r"9.8 \text{ m/s}^2", True), ("9.8", r"9.8\,\text{m}/\text{s}^2", True),
        (r"9.8\text{ m/s}^2", r"9.8\text{ m/s}", False), ("5", r"5\ \Omega", False),
    ],
    "degree": [
        (r"60^\circ", "60", True), ("60", r"60^{\circ}", True), (r"60^\circ", "60°", True), (r"60^\circ", r"60\text{ degrees}", True), (r"60^\circ", r"\frac{\pi}{3}", True), (r"60^\circ", r"\frac{\pi}{6}", False),
        (r"60^\circ", r"61^\circ", False), ("60", r"\frac{\pi}{3}", False), (r"\frac{\pi}{2}", r"90^\circ", True), (r"\cos 60^\circ", r"\frac12", True), (r"\cos 60", r"\frac12", False), (r"180^\circ", r"\pi", True), ("60 degrees", "60", True), (r"\sin 30°", "0.5", True), (r"\tan 45^{\circ}", "1", True),
        (r"1^\circ", "1", True),
    ],
    "money": [
        (r"\$5", "5", True), ("5", r"\$5", True), (r"\$5", r"\$5.00", True), (r"\$5", r"5\text{ dollars}", True), (r"\$5", r"500\text{ cents}", True), (r"\$5", r"5\text{ cents}", False), (r"\$32,\!348", "32348", True), (r"\$32,\!348", r"\$32,348", True), (r"\$18.90", "18.9", True), ("18.90", r"\$18.90", True), ("70000", r"\$70{,}000", True), ("64", r"\text{\$64}", True), ("64", "$64", True),
        (r"\$5", r"€5", False), ("5", "€5", True), ("5", "£5", True), ("0.25", r"25\text{ cents}", True), ("25", r"25\text{ cents}", True), ("0.25", "25¢", True), (r"\$36", r"36\text{ dollars}", True), (r"\$36", r"\$63", False), ("5.4 \\text{ cents}", "5.4", True), ("20 dollars", r"\$20", True), ("20元", "20", True), (r"-\$5", "-5", True), ("-5", r"\$-5", True),
    ],
    "thousands": [
        ("12345", "12,345", True), ("12,345", "12345", True), ("12345", r"12{,}345", True), ("12345", r"12\,345", True), ("12345", r"12,\!345", True), ("1234567.5", "1,234,567.5", True), ("12345", "12 345", True), ("11,\\! 111,\\! 111,\\! 100", "11111111100", True), ("58,500", "58500", True),
        ("1234", "1.234", False), ("123", "1,23", False), ("1,23", "123", False), ("1,2,3", "123", False), ("100,200", "100, 200", True), ("100,200", "200, 100", True), ("(1,234)", "(1, 234)", True), ("1234", "(1,234)", False), ("27,54,108,135", "27, 54, 108, 135", True), ("198954,864", "864, 198954", True), ("10,000", "10000", True), ("10,000", "10,001", False), ("1000000", "10^6", True),
    ],
    "spacing": [
        ("(3,4)", r"(3,\,4)", True), ("(3,4)", r"\left(3, 4\right)", True), ("x+1", "x + 1", True), ("x+1", r"x\!+\!1", True), (r"\sqrt{5}", r"\sqrt 5", True), (r"\sqrt{5}", r"\sqrt5", True), ("5", r"\;5\;", True), ("5", r"\displaystyle 5", True), ("5", "$$5$$", True), ("5", r"\[5\]", True), (r"\frac{1}{2}", r"\displaystyle\frac{1}{2}", True), ("5", "{5}", True), ("5", "((5))", True),
        ("5", "5.", True), ("5", "5,", True), (r"3\pi", r"3 \pi", True), ("2x", "2 x", True), ("2x", r"2\cdot x", True), (r"\frac{\pi}{2}", r"\frac {\pi} {2}", True), ("(3,4)", r"\bigl(3,4\bigr)", True), ("5", r"\boldsymbol{5}", True), ("5", r"\textbf{5}", True), ("x", r"\mathit{x}", True), ("5", r"\text{ }5", True), ("5", "~5", True), (r"\{1,2\}", r"\left\{1,2\right\}", True),
    ],
    "sqrt": [
        (r"2\sqrt{3}", r"\sqrt{12}", True), (r"\sqrt{12}", "2√3", True), (r"\frac{2}{\sqrt{3}}", r"\frac{2\sqrt{3}}{3}", True), (r"\sqrt[3]{8}", "2", True), (r"\sqrt[3]{16}", r"2\sqrt[3]{2}", True), (r"\sqrt[3]{16}", r"2\sqrt{2}", False), (r"\sqrt{4}", "2", True), (r"\sqrt{4}", "-2", False), (r"3^{1/2}", r"\sqrt{3}", True), (r"\sqrt{7}+\sqrt{5}", r"\sqrt{5}+\sqrt{7}", True), (r"\sqrt{7}+\sqrt{5}", r"\sqrt{12}", False),
        (r"\frac{1}{\sqrt{5}-2}", r"\sqrt{5}+2", True), (r"\sqrt{7+4\sqrt{3}}", r"2+\sqrt{3}", True), (r"\sqrt{7-4\sqrt{3}}", r"2-\sqrt{3}", True), (r"\sqrt{2}\sqrt{3}", r"\sqrt{6}", True), (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}", True), (r"5\sqrt[3]{4}", r"5\cdot 2^{2/3}", True), ("sqrt(3)/2", r"\frac{\sqrt{3}}{2}", True), ("sqrt{3}", r"\sqrt{3}", True), (r"11\sqrt2", r"11\sqrt{2}", True),
        (r"\sqrt{\frac{95}{24}}", r"\frac{\sqrt{570}}{12}", True), (r"\frac{9 \sqrt{23}}{23}", r"\frac{9}{\sqrt{23}}", True), (r"\sqrt{-4}", "2i", True), (r"\sqrt{x^2}", "|x|", True), (r"\sqrt{1000001}", "1000.0005", False), (r"\sqrt{5}", r"\sqrt{6}", False), (r"\sqrt{\sqrt{16}}", "2", True), (r"2^{-2/3}", r"\frac{1}{\sqrt[3]{4}}", True), (r"\sqrt[4]{4}", r"\sqrt{2}", True), (r"\frac{8}{\sqrt[3]{7}}", r"\frac{8\sqrt[3]{49}}{7}", True), (r"\sqrt{50}-\sqrt{2}", r"4\sqrt2", True),
    ],
    "pi": [
        (r"2\pi", "2π", True), (r"2\pi", "2*pi", True), (r"2\pi", r"\pi \cdot 2", True), (r"2\pi", "6.28", False), (r"2\pi", "6.283185307", False), (r"\frac{3\pi}{4}", r"\frac{3}{4}\pi", True), (r"\frac{3\pi}{4}", r"0.75\pi", True), (r"\pi", "3.14", False), (r"\pi^2", r"\pi", False), (r"1-\frac{2}{\pi}", r"\frac{\pi-2}{\pi}", True), (r"\frac{20000}{\pi}", r"20000/\pi", True), (r"\frac{22}{7}", r"\pi", False), (r"288\pi", "288pi", True), (r"18+2\pi", r"2(\pi+9)", True), (r"e^{\pi}", r"\pi^{e}", False), (r"e^{\pi}-\pi", "20", False),
    ],
    "interval": [
        ("(2,5)", "2<x<5", True), ("[2,5]", r"2\le x\le 5", True), ("[2,5]", "2<x<5", False), ("[2,5)", r"2\leq x<5", True), ("(2,5]", "[2,5)", False), (r"(-\infty,4)", "x<4", True), (r"(-\infty,4]", r"x\le4", True), (r"(-\infty,4]", "x<4", False), (r"[4,\infty)", r"x\ge 4", True), (r"[4,\infty)", "4≤x", True), (r"(-\infty,1)\cup(3,\infty)", r"x<1 \text{ or } x>3", True), (r"(-\infty,1)\cup(3,\infty)", r"(3,\infty)\cup(-\infty,1)", True),
        (r"(-\infty,1)\cup(3,\infty)", r"(-\infty,1]\cup[3,\infty)", False), (r"[0,2]\cup[1,3]", "[0,3]", True), (r"\left[\frac12,\infty\right)", r"[0.5,+\infty)", True), ("(0,1)", "[0,1]", False), ("(0,1)", "(0,2)", False), (r"x\in(1,3)", "(1,3)", True), ("[1,3]", r"\{x \mid 1\le x\le 3\}", True), ("(1,3)", r"\{x: 1<x<3\}", True), (r"(-\infty,\infty)", r"\mathbb{R}", True), (r"\mathbb{R}\setminus\{2\}", r"x\ne 2", True), (r"(-\infty,2)\cup(2,\infty)", r"x\neq2", True),
        (r"(1,\infty)", "x>1", True), (r"(1,\infty)", "1<x", True), (r"(1,\infty)", "x<1", False), (r"(0, \infty)", "(0, inf)", True), (r"[\frac{\pi^2}{8}, \frac{5\pi^2}{4}]", r"\left[\frac{\pi^2}{8}, \frac{5\pi^2}{4}\right]", True), ("[a,b]", "[a,b]", True), ("[a,b]", "(a,b)", False), ("(-1,1)", "|x|<1", True), ("1<x<3", "3>x>1", True), (r"(1,2)\cap(0,3)", "(1,2)", True), (r"[0,1)\cup\{2\}", r"[0,1)\cup\{2\}", True), ("(0,9) \\cup (9,36)", "0<x<36, x\\ne 9", True),
    ],
    "set": [
        (r"\{1,2,3\}", r"\{3,2,1\}", True), (r"\{1,2,3\}", "1,2,3", True), (r"\{1,2,3\}", r"\{1,2,4\}", False), ("{1,2}", r"\{1,2\}", True), ("1,2", "2,1", True), ("1, 2", "1 and 2", True), ("1,2", r"1\text{ or }2", True), ("1,2", "x=1 or x=2", True), ("1,2", r"x_1=1, x_2=2", True), ("1,2", "1;2", True), ("1,2", "1", False), ("1", "1,2", False), (r"\emptyset", r"\varnothing", True), (r"\emptyset", r"\text{no solution}", True), (r"\emptyset", r"\{0\}", False), (r"\emptyset", "∅", True),
        (r"\{5\}", "5", True), (r"\{1\pm\sqrt{5},-2\}", r"\{-2,1+\sqrt5,1-\sqrt5\}", True), ("1,-1", r"\pm1", True), ("3,5,7", "3, 5 and 7", True), ("3,5,7", "3, 5, and 7", True), ("3,5,7", "(3,5,7)", True), ("2,3", "23", False), ("23", "2,3", False), (r"\frac12,\frac13", r"\frac13,\frac12", True), ("a,b", "b,a", True), (r"\{-1,0,1\}", r"\{0,\pm 1\}", True), ("1,1,2", "1,2,2", False), ("69$,$84", "69,84", True), (r"\{(1,2),(3,4)\}", "(3,4),(1,2)", True),
    ],
    "tuple": [
        ("(3,4)", "(4,3)", False), ("(3,4)", "(3,4)", True), ("(3,4)", "(3.0,4)", True), ("(3,4)", "x=3,y=4", True), ("(3,4)", "x=4,y=3", False), ("(3,4)", "(x,y)=(3,4)", True), ("(3,4)", "(3,4,5)", False), ("(3,4)", "3,4", True), (r"(\frac12,\sqrt2)", r"\left(0.5,\sqrt{2}\right)", True), ("(1,2),(3,4)", "(3,4),(1,2)", True), ("(1,2),(3,4)", "(2,1),(3,4)", False), (r"\left(3,\frac{\pi}{2}\right)", r"(3,\pi/2)", True), ("(3,4)", "(3;4)", True), ("(a,b)=(3,4)", "(3,4)", True),
        ("(a,b,c)", "(a,b,c)", True), (r"(\pm1,2)", "(1,2),(-1,2)", True), ("(3,4)", "[3,4]", False), ("(3,4)", r"\begin{pmatrix}3\\4\end{pmatrix}", True), (r"\langle 3,4\rangle", "(3,4)", True), ("(-1,2,5)", "(-1,2)", False), ("((1,2),3)", "((1,2),3)", True), ("(6,31,-1)", "(6, 31, -1)", True), ("3", "(3,3)", False), ("12", "(1,2)", False), ("A(3,4)", "(3,4)", True), ("(3,4)", "P(3,4)", True), ("(3,4)", "P=(3,4)", True),
    ],
    "matrix": [
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", True), (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", False), (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}", False), (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)", True), (r"\begin{pmatrix}0.5\\2\end{pmatrix}", r"\begin{pmatrix}\frac12\\2\end{pmatrix}", True), (r"\begin{pmatrix}2&0\\0&2\end{pmatrix}", r"2\begin{pmatrix}1&0\\0&1\end{pmatrix}", True),
        (r"\begin{pmatrix}1/5\\-18/5\end{pmatrix}", r"\frac15\begin{pmatrix}1\\-18\end{pmatrix}", True), (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{matrix}1&2\\3&4\end{matrix}", True), (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1 & 2 \\ 3 & 4 \\ \end{pmatrix}", True), (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", True), (r"\begin{pmatrix}0\\0\end{pmatrix}", "0", False), (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\left[\begin{array}{c}1\\2\end{array}\right]", True), (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\-2\end{bmatrix}", False),
    ],
    "equation": [
        ("5", "x=5", True), ("x=5", "5", True), ("x=5", "x=6", False), ("x=5", "5=x", True), ("y=2x+3", "y=2x+3", True), ("y=2x+3", "2x+3", True), ("y=2x+3", "y-2x=3", True), ("y=2x+3", "y=2x+4", False), ("y=2x", "x=2y", False), ("x^2+y^2=4", "y^2=4-x^2", True), ("x^2+y^2=4", "x^2+y^2-4=0", True), ("x^2+y^2=4", "2x^2+2y^2=8", True), ("x^2+y^2=4", "4", False), ("x+y=1", "1", False), ("x=2", "y=2", False), ("f(x)=2x", "2x", True), ("f(x)=2x", "f(x)=2x+1", False), ("f(x)=x^2", "f(t)=t^2", True), ("7", "2+5=7", True), ("7", "2+5", True),
        ("7", "x=2+5=7", True), ("12", "a+b=12", True), ("12", "a+b+c = 12", True), ("k=1", "1", True), ("AB=5", "5", True), ("5", r"|AB|=5", True), (r"\frac{a}{b}=3", "3", True), ("S_n=n^2", "n^2", True), ("5x-7y+11z+4=0", "-5x+7y-11z-4=0", True), ("5x-7y+11z+4=0", "5x-7y+11z=4", False), (r"\frac{x^2}{4}+y^2=1", "x^2+4y^2=4", True), ("x=5", "y=5", False), ("x=3,y=4", "x=4,y=3", False), ("x=3,y=4", "y=4,x=3", True), (r"\text{Area}=12", "12", True), ("12", r"\text{The area is }12", True), ("xy=6", "y=6/x", True), ("y^2=4x", "x^2=4y", False), ("3", "x=3", True), ("3", "3=x", True),
        (r"x=\frac{1}{2}=0.5", "0.5", True), ("5", "4=5", False), ("4", "4=5", False),
    ],
    "inequality": [
        ("x>3", "3<x", True), ("x>3", r"x\ge3", False), ("x>3", "x>3.0", True), ("x>3", "x<3", False), ("x>3", "y>3", False), ("2x>6", "x>3", True), ("-x>-3", "x<3", True), ("a<b", "b>a", True), ("a<b<c", "c>b>a", True), ("a<b<c", "a<c<b", False), (r"x\ne 2", r"x\neq 2", True), (r"x\ne 2", "x!=2", True), (r"x\ne 2", "x=2", False), (r"-1\le x<4", "[-1,4)", True), ("x<1 or x>4", "x>4 or x<1", True), ("x<1 or x>4", "1<x<4", False), (r"k\geqslant 2", "k>=2", True), ("x>1 and x<3", "1<x<3", True), ("x>1 and x<3", "(1,3)", True), (r"\frac{3}{13}>\frac{9}{40}", r"\frac{9}{40}<\frac{3}{13}", True), (r"\frac{3}{13}>\frac{9}{40}", r"\frac{3}{13}<\frac{9}{40}", False), ("A<B", "B<A", False), ("x>3", "3", False), ("3", "x>3", False), ("x+y>2", "y+x>2", True), ("x+y>2", "x+y<2", False),
    ],
    "plus_minus": [
        (r"\pm2", "2,-2", True), (r"\pm2", "2", False), ("2", r"\pm2", False), (r"\pm2", r"x=\pm 2", True), (r"3\pm\sqrt5", r"3+\sqrt5,3-\sqrt5", True), (r"3\pm\sqrt5", r"3+\sqrt5", False), (r"\frac{-1\pm\sqrt{13}}{4}", r"\frac{-1+\sqrt{13}}{4},\frac{-1-\sqrt{13}}{4}", True), (r"\pm2", "±2", True), (r"\pm2", r"\mp2", True), (r"\pm\sqrt{2}", r"\sqrt{2},-\sqrt{2}", True), (r"\pm 2, 3", "-2,2,3", True), (r"\pm i", "i,-i", True), (r"\pm2", "-2", False), (r"1\pm2i", "1-2i,1+2i", True), (r"\pm2", "+2, -2", True), (r"x = 2 \text{ or } x = -2", r"\pm 2", True),
    ],
    "text": [
        (r"\text{east}", "east", True), (r"\text{east}", "East", True), (r"\text{east}", r"\text{West}", False), (r"\text{ellipse}", "an ellipse", True), (r"\text{ellipse}", r"\text{circle}", False), ("Yes", r"\text{yes}", True), ("Yes", "No", False), (r"\text{Tuesday}", "Tuesday.", True), ("Alice", "Bob", False), ("odd", "even", False), (r"\text{not prime}", "prime", False), ("true", "false", False), (r"\text{Evelyn}", r"\mathrm{Evelyn}", True), ("seat", "east", False), ("line segment", r"\text{line segment}", True), ("the circle", "circle", True), ("Monday and Friday", "Friday and Monday", True), ("5", r"\text{five}", False), ("undefined", r"\text{does not exist}", True),
    ],
    "choice": [
        ("B", "(B)", True), ("B", r"\text{B}", True), ("B", r"\textbf{(B)}", True), ("B", "B.", True), ("B", "B)", True), ("B", r"\boxed{B}", True), ("B", "C", False), ("B", "b", False), ("(B)", "B", True), (r"\text{(B)}", "B", True), ("B", r"\textbf{(B)}\ 12", True), ("B", "Option B", True), ("B", r"\text{Choice B}", True), ("B", r"\mathbf{B}", True), ("B", "Ｂ", True), ("B", "（B）", True), ("B", r"\beta", False), ("B", "BC", False), ("A", "A. 12", True), ("A", "A car", False), ("B", "选B", True), ("B", "B．", True), ("E", r"\mathrm{E}", True), ("C", "C: 3", True), ("D", "12", False), ("A", "A or B", False),
    ],
    "polynomial": [
        ("x^2-4", "(x-2)(x+2)", True), ("x^2-4", "-4+x^2", True), ("x^2-4", "x^2+4", False), ("(x+1)^3", "x^3+3x^2+3x+1", True), ("(a+5)(b+2)", "(b+2)(a+5)", True), ("2k+2", "2(k+1)", True), ("p-q", "q-p", False), ("p-q", "-(q-p)", True), ("3x", "3y", False), ("x^2y", "yx^2", True), ("xyz", "zyx", True), ("abc", "cab", True), ("x/2", r"\frac12x", True), ("0.5x", r"\frac{x}{2}", True), (r"\frac{x^2-1}{x-1}", "x+1", True), ("x^3", "x^2", False), ("x^{10}", "x^10", True), ("5r^5", r"5 \cdot r^5", True), ("8n^2+4n+1", "4n(2n+1)+1", True), ("2^{n+1}", r"2\cdot2^n", True), ("2^n", "n^2", False), ("2^n", "2n", False), ("n!", "n(n-1)!", True), (r"\frac{n(n+1)}{2}", r"\binom{n+1}{2}", True), (r"\sum_{k=1}^{n}k", r"\frac{n(n+1)}{2}", True),
        ("|x-3|", "|3-x|", True), ("|x|", "x", False), ("x", "X", False), (r"\alpha+\beta", r"\beta+\alpha", True), (r"\log_2 8", "3", True), (r"\ln 4", r"2\ln 2", True), (r"\ln 4", r"\ln 2", False), (r"\log 100", "2", True), (r"\lfloor x\rfloor", "x", False), (r"\lfloor 3.7\rfloor", "3", True), (r"\lceil 3.2\rceil", "4", True), ("x^5-x^4+x^3-x^2+x-1", "(x-1)(x^4+x^2+1)", True), ("x_1+x_2", "x_2+x_1", True), ("x_1", "x_2", False), (r"\frac{1}{2n+2}", r"\frac{1}{2(n+1)}", True), ("(-1)^n", "(-1)^{n+2}", True), ("(-1)^n", r"\cos(n\pi)", True), ("4(3-x)(3+x)", "36-4x^2", True), (r"\max(a,b)", r"\max(b,a)", True), ("a^{m+n}", "a^m a^n", True), ("e^{x+y}", "e^x e^y", True), (r"e^{2\ln x}", "x^2", True),
    ],
    "trig": [
        (r"\cos 2x", r"1-2\sin^2x", True), (r"\cos 2x", r"2\cos^2 x-1", True), (r"\tan x\cos x", r"\sin x", True), (r"\sin^2x+\cos^2x", "1", True), (r"\sec x", r"\frac{1}{\cos x}", True), (r"\cot x", r"\frac{\cos x}{\sin x}", True), (r"\sin x", r"\cos x", False), (r"\sin(x+y)", r"\sin x\cos y+\cos x\sin y", True), (r"\sin 75^\circ", r"\frac{\sqrt6+\sqrt2}{4}", True), (r"\arctan 1", r"\frac{\pi}{4}", True), (r"\tan^{-1}(1)", r"\arctan 1", True), ("np.arcsin(10/13)", r"\arcsin\frac{10}{13}", True), (r"\cos\frac{\pi}{3}", "0.5", True), ("sin(x)", r"\sin x", True), (r"\sin^{-1}\frac12", r"\frac{\pi}{6}", True), (r"\csc^2 x", r"1+\cot^2x", True), (r"2\sin 3x", r"2\sin(3x)", True), (r"\sin 2x", r"2\sin x", False), (r"\sqrt{2}\cos(2t-\pi/4)", r"\cos 2t+\sin 2t", True), (r"\sin\theta", r"\sin \theta", True), ("sinx", r"\sin x", True), (r"\cosh x", r"\frac{e^x+e^{-x}}{2}", True),
    ],
    "complex": [
        ("2+3i", "3i+2", True), ("2+3i", "2-3i", False), ("i^2", "-1", True), ("-i", r"\frac1i", True), ("(1+i)^2", "2i", True), (r"\frac{1}{i}", "-i", True), ("3i", "3", False), (r"2e^{i\pi}", "-2", True), (r"e^{i\pi/2}", "i", True), (r"\frac{1+i}{\sqrt2}", r"e^{i\pi/4}", True), (r"|3+4i|", "5", True), ("6-5i", "-5i+6", True), ("1+274i", "274i+1", True), (r"1-\mathrm{i}", "1-i", True), (r"\cos\frac{\pi}{3}+i\sin\frac{\pi}{3}", r"\frac12+\frac{\sqrt3}{2}i", True), (r"\sqrt{-9}", "3i", True), ("i", "-i", False), (r"-8-8\sqrt3i", r"-8(1+\sqrt{3}i)", True), (r"\overline{z}", "z", False), ("2+3i", "2+3j", False),
    ],
    "base": [
        ("101_2", "101_2", True), ("101_2", "101_{2}", True), ("101_2", "101_{(2)}", True), ("101_2", "101_3", False), ("101_2", "110_2", False), ("52_8", "52_{8}", True), ("52_8", "53_8", False), ("4210_5", "4210_{5}", True), ("2A_{16}", "2A_{16}", True), ("FF_{16}", r"\text{FF}_{16}", True), ("204_5", "204", True), ("101_2", "5", False), ("2516_8", r"2516_{\text{eight}}", True), ("11110_2", "1111_2", False),
    ],
    "time": [
        (r"\text{4:15 p.m.}", "4:15 PM", True), ("4:15", r"4\!:\!15", True), ("4:15 PM", "4:15 AM", False), ("4:15 PM", "16:15", True), ("4:15", "4:51", False), (r"10\text{:}30", "10:30", True), ("3:2", "3:2", True), ("3:2", r"\frac32", True), ("3:2", "2:3", False), ("1:2:3", "2:4:6", True), ("1:2:3", "1:3:2", False), (r"\text{9:00 a.m.}", r"9:00\text{ a.m.}", True), ("9 a.m.", "9:00 a.m.", True), ("3:2", "3 : 2", True), ("3:2", r"3\text{ to }2", True), ("12:00", "12:00 noon", True),
    ],
    "chinese": [
        ("7", "７", True), ("7", "7个", True), ("7", "7厘米", True), ("（3，4）", "(3,4)", True), ("3，4", "3,4", True), ("3、4", "3,4", True), ("否", "是", False), ("不存在", r"\text{不存在}", True), ("充要条件", "充分条件", False), ("充要条件", "充要条件。", True), ("x=3或x=4", "3,4", True), ("100元", "100", True), ("12平方厘米", "12平方厘米", True), ("12平方厘米", "12立方厘米", False), ("5千克", "5000克", True), ("5", "约5", True), ("[0，+∞)", r"[0,+\infty)", True), ("5", "５．０", True), ("丙", "乙", False), ("1，2，3，或6", "1,2,3,6", True), ("甲", r"\text{甲}", True), ("y＝x－1", "y=x-1", True), ("45度", r"45^\circ", True), ("30％", r"30\%", True),
    ],
    "scientific": [
        ("1.5e3", "1500", True), (r"1.5\times10^3", "1500", True), ("1.5e3", r"1.5 \cdot 10^{3}", True), ("1.5e-3", "0.0015", True), ("1.5e3", "1.5e4", False), (r"6.02\times 10^{23}", "6.02e23", True), (r"6.02\times 10^{23}", "602000000000000000000000", True), ("2 × 10^(-10)", r"2\times10^{-10}", True), ("10^{-3}", "0.001", True), ("3E8", "3e8", True), (r"10^{100}", "1e100", True), ("1.5e3", "1.5*10^3", True), ("1.5e3", "1.5*10**3", True), ("0.0000672", r"6.72\times 10^{-5}", True), ("1e3", "10e2", True), (r"\frac{1}{10^{20}}", "10^{-20}", True), ("4.5e33", "4.5 x 10^{33}", True),
    ],
    "infinity": [
        (r"\infty", r"+\infty", True), (r"\infty", "infinity", True), (r"\infty", "inf", True), (r"-\infty", r"\infty", False), (r"\infty", "1000000", False), (r"\infty", r"\text{undefined}", False), (r"\infty", r"\frac10", False), ("oo", r"\infty", True), (r"\infty", r"\text{infinitely many}", True), (r"\infty+1", r"\infty", False), (r"-\infty", "-∞", True), (r"\infty", r"\infty-\infty", False),
    ],
    "empty": [
        ("5", "", False), ("5", " ", False), ("0", r"\text{}", False), ("0", "{}", False), ("0", r"\quad", False), (r"\emptyset", r"\{\}", True), ("0", r"\text{none}", False), ("0", "?", False), ("5", "...", False), ("5", "-", False), ("5", r"\_\_", False),
    ],
    "tolerance": [
        ("123456", "123457", False), ("1.0001", "1.0002", False), ("100", "100.001", False), (r"10^{12}", r"10^{12}+1", False), ("0.001", "0.0011", False), (r"\frac{1}{1000}", r"\frac{1}{1001}", False), ("1e-10", "2e-10", False), ("1e-10", "0", False), (r"\sqrt{2}", "1.41421356237", False), (r"2^{100}", r"2^{100}+1", False), ("50!", "50!+1", False), (r"e^{10}", "22026.4657948", False), (r"\pi", r"\frac{355}{113}", False), (r"\sqrt{10}", r"\pi", False), ("1000", "999.9999", False), ("2024!", "2024!+1", False), (r"\sqrt{17}", r"\sqrt{17.0001}", False), (r"\ln 2", "0.693", False),
    ],
    "garbage": [
        ("5", "=", False), ("5", "==5==", False), ("5", "NaN", False), ("nan", "nan", True), ("5", "True", False), ("1", "True", False), ("0", "False", False), ("5", "None", False), ("5", "4,5,6", False), ("5", "5 or 6", False), ("5", "__import__('os')", False), ("5", "5;6", False), ("5", "5 = 6", False), ("5", r"5\neq 6", False), ("5", "not 5", False), ("5", r"\text{not }5", False), ("5", "5?", False), ("5", "~5", True), ("x", "lambda x: x", False), ("5", "five", False), ("5", "5!", False), ("5", "!5", False), ("120", "5!", True), ("5", "<5", False), ("5", "5 5", False), ("5", "(5", False), ("5", "5)", False), ("5", r"\frac{5}", False), ("5", "5_", False), ("5", r"5\\", True), ("5", "#5", False), ("5", "5 \\text{ or maybe } 6", False), ("5", r"\cancel{5}", False), ("10", "1 0", False), ("5", r"5 \pm 1", False), ("5", r"5 \ldots 9", False),
    ],
}
