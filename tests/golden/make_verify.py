"""Answers and verdicts, written by hand from the rules of docs/rewards.md.

No package computes these: each row says what a reader of the rules expects.
"""

import golden_files

LONG = "We count the loaves once more. "  # 31 characters

# (response, right answer, extracted, right)
DAPO = [
    # Where the answer is found.
    ("Answer: 12", "12", "12", True),
    ("answer: 12", "12", "12", True),
    ("ANSWER : 12", "12", "12", True),
    ("So the Answer:12", "12", "12", True),
    ("Answer  :   12", "12", "12", True),
    ("Answer\n:\n12", "12", "12", True),
    ("Answer: 11\nAnswer: 12", "12", "12", True),
    ("Answer: 12\nAnswer: 11", "12", "11", False),
    ("Answer: 12\nThat is all.", "12", "12", True),
    ("Answer: 12 Answer: 13", "13", "12Answer:13", False),
    ("The answer is 12", "12", "[INVALID]", False),
    ("12", "12", "[INVALID]", False),
    ("", "12", "[INVALID]", False),
    ("\\boxed{12}", "12", "[INVALID]", False),
    ("Final answer: \\boxed{12}", "12", "12", True),
    ("**Answer:** 12", "12", "**12", False),
    ("An\u017fwer: 12", "12", "12", True),
    ("Answer:\u00a0\u300012", "12", "12", True),
    ("Answer: 12\rmore", "12", "12\rmore", False),
    # The last 300 characters alone.
    ("Answer: 12" + " " * 290, "12", "12", True),
    ("Answer: 12" + " " * 295, "12", "[INVALID]", False),
    ("Answer: 12\n" + LONG * 9, "12", "12", True),
    ("Answer: 12\n" + LONG * 10, "12", "[INVALID]", False),
    ("Answer: 12\n" + "\u6570" * 289, "12", "12", True),
    ("Answer: 12\n" + "\u6570" * 290, "12", "[INVALID]", False),
    # What follows the last equals sign.
    ("Answer: x = 12", "12", "12", True),
    ("Answer: x = y = 12", "12", "12", True),
    ("Answer: 12 = x", "12", "x", False),
    ("Answer: 12", "n = 12", "12", True),
    # Substitutions and deletions.
    ("Answer: $12$", "12", "12", True),
    ("Answer: $12$.", "12", "12", True),
    ("Answer: $12.$", "12", "12", True),
    ("Answer: 12.", "12", "12.", False),
    ("Answer: \\$12", "12", "12", True),
    ("Answer: 12 dollars", "12", "12", True),
    ("Answer: 12 square feet", "12", "12", True),
    ("Answer: 12 km", "12", "12", True),
    ("Answer: 12 loaves", "12", "12loaves", False),
    ("Answer: a pair", "pair", "pair", True),
    ("Answer: an even pair", "even pair", "evenpair", True),
    ("Answer: 30^\\circ", "30", "30", True),
    ("Answer: 30^{\\circ}", "30", "30", True),
    ("Answer: 30 degrees", "30", "30", True),
    ("Answer: 1{,}234", "1234", "1234", True),
    ("Answer: 1,\\!234", "1234", "1234", True),
    ("Answer: 1,234", "1234", "1234", True),
    ("Answer: 12,34", "1234", "1234", True),
    ("Answer: -1,234", "-1234", "-1,234", False),
    ("Answer: (1, 2)", "(1,2)", "(1,2)", True),
    ("Answer: 1\\ldots 9", "19", "19", True),
    ("Answer: 1 \\text{and} 2", "1,2", "12", True),
    ("Answer: x \\text{and} y", "x,y", "x,y", True),
    ("Answer: issued", "isd", "isd", True),
    ("Answer: \"12\"", "12", "12", True),
    # The first mathematics of the line, and what is unwrapped.
    ("Answer: about $12$ or $13$", "12", "12", True),
    ("Answer: \\text{twelve}", "twelve", "twelve", True),
    ("Answer: \\textbf{12}", "12", "12", True),
    ("Answer: \\mbox{twelve}", "twelve", "twelve", True),
    ("Answer: \\overline{12}", "12", "12", True),
    ("Answer: $\\boxed{\\frac{1}{2}}$", "\\frac{1}{2}", "\\frac{1}{2}", True),
    ("Answer: \\frac12", "\\frac{1}{2}", "\\frac{1}{2}", True),
    ("Answer: \\sqrt2", "\\sqrt{2}", "\\sqrt{2}", True),
    ("Answer: \\sqrt12", "\\sqrt{12}", "\\sqrt{1}2", False),
    ("Answer: 0.5", "\\frac{1}{2}", "0.5", False),
    ("Answer: 12.0", "12", "12.0", False),
    ("Answer: 012", "12", "012", False),
    ("Answer: +12", "12", "+12", False),
    ("Answer: \u221212", "-12", "\u221212", False),
    ("Answer: -12", "-12", "-12", True),
    ("Answer: 12%", "12", "12%", False),
    ("Answer: 12 cm", "12 cm", "12", True),
    ("Answer: \u0661\u0662", "12", "\u0661\u0662", False),
]

# (response, right answer, extracted, right); none extracted: there is no box
STRICT = [
    ("\\boxed{12}", "12", "12", True),
    ("So it is $\\boxed{12}$.", "12", "12", True),
    ("\\boxed{ 12 }", "12", " 12 ", False),
    ("\\boxed{012}", "12", "012", False),
    ("\\boxed{'12'}", "12", "'12'", False),
    ("\\boxed{11} \\boxed{12}", "12", "12", True),
    ("\\boxed{12} \\boxed{11}", "12", "11", False),
    ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}", "\\frac{1}{2}", True),
    ("\\boxed{\\frac12}", "\\frac{1}{2}", "\\frac12", False),
    ("\\boxed{{12}}", "{12}", "{12}", True),
    ("\\boxed{}", "", "", True),
    ("Answer: 12", "12", None, False),
    ("", "", None, False),
    ("12", "12", None, False),
    ("\\boxed{12}" + "." * 90, "12", "12", True),
    ("\\boxed{12}" + "." * 91, "12", None, False),
    ("\\boxed{12}" + "\u6570" * 90, "12", "12", True),
]

# (right answer, response, same)
EQUIVALENCE = [
    # Rationals and decimals.
    ("12", "12", True), ("12", "13", False), ("12", "12.0", True), ("12", "+12", True),
    ("-12", "\u221212", True), ("12", "-12", False), ("1234", "1,234", True),
    ("\\frac{3}{4}", "0.75", True), ("0.75", "3/4", True), ("\\frac{3}{4}", "\\frac{6}{8}", True),
    ("\\frac34", "\\dfrac{3}{4}", True), ("\\frac{3}{4}", "\\frac{4}{3}", False),
    ("\\frac{1}{7}", "0.142857", True), ("\\frac{1}{7}", "0.14", False), ("2\\frac{1}{4}", "9/4", True),
    ("-\\frac{1}{5}", "\\frac{-1}{5}", True), ("1000000", "10^6", True), ("0", "-0", True),
    ("0.0000001", "0.0000002", False),
    # Radicals, constants, powers.
    ("\\sqrt{50}", "5\\sqrt{2}", True), ("\\sqrt{2}", "1.41", False), ("\\frac{1}{\\sqrt{3}}", "\\frac{\\sqrt{3}}{3}", True),
    ("\\pi", "3.14", False), ("2\\pi", "\\pi+\\pi", True), ("\\log_3 81", "4", True),
    ("2^{100}", "4^{50}", True), ("2^{100}", "2^{100}+1", False), ("\\sqrt[3]{27}", "3", True),
    ("e^2", "e \\cdot e", True), ("5!", "120", True),
    # Percent, ratios, residues.
    ("35\\%", "0.35", True), ("35\\%", "35", True), ("2.5\\%", "2.5", False), ("5:6", "5/6", True),
    ("5:6", "10:12", True), ("5:6", "6:5", False), ("4\\pmod{9}", "4", True),
    # Expressions and equations.
    ("x^2-1", "(x-1)(x+1)", True), ("x^2-1", "(x-1)^2", False), ("a+b", "b+a", True),
    ("ab", "ba", True), ("a-b", "b-a", False), ("x=9", "9", True), ("9", "x=9", True),
    ("x=9", "y=9", False), ("y=2x+1", "2x-y=-1", True), ("y=2x+1", "y=2x-1", False),
    ("\\frac{x}{2}+\\frac{x}{2}", "x", True), ("\\sqrt{x^2}", "x", False),
    # Points, sets, intervals, inequalities, matrices.
    ("(2,5)", "(2, 5)", True), ("(2,5)", "(5,2)", False), ("\\{2,5\\}", "\\{5,2\\}", True),
    ("\\{2,5\\}", "2,5", True), ("2,5", "2,5,7", False), ("\\pm 4", "4,-4", True), ("\\pm 4", "4", False),
    ("[2,5]", "[2,5)", False), ("[0,2]\\cup[2,7]", "[0,7]", True), ("x\\ge 4", "4\\le x", True),
    ("x>4", "x\\ge 4", False), ("x\\le 4", "(-\\infty,4]", True),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", True),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}", False),
    # Words, choices, measures.
    ("\\text{odd}", "odd", True), ("\\text{odd}", "even", False), ("\\text{Tuesday}", "tuesday", True),
    ("B", "(B)", True), ("B", "C", False), ("8\\text{ cm}", "8", True), ("8 cm", "8 m", False),
    ("8", "8 loaves", True), ("\\$8", "8", True), ("40^\\circ", "40", True), ("9 am", "9 pm", False),
    # Where the answer of a response is.
    ("12", "First 11, then the final answer is $12$. I hope it is correct.", True),
    ("12", "We get $11$ and then \\boxed{12}.", True), ("12", "\\boxed{11}, not 12", False),
    ("12", "After six loaves are sold, the answer is 12.", True), ("12", "The last number here is 12", True),
    ("12", "Answer: $12$", True), ("12", "Answer: $\n12\n$", False), ("12", "there is no number", False), ("12", "", False),
    ("2,3", "\\boxed{2} or \\boxed{3}", True), ("5", "\\geq 5", False),
    ("\\frac{1}{2}", "So the probability is $\\boxed{\\dfrac{1}{2}}$.", True),
]


def write(folder):
    dapo = [{"solution": solution, "gold": gold, "strict_box": strict, "acc": right,
             "score": 1.0 if right else -1.0, "pred": extracted}
            for strict, rows in ((False, DAPO), (True, STRICT))
            for solution, gold, extracted, right in rows]
    golden_files.write_cases(
        folder / "verify" / "dapo_cases.json",
        "pred = what the verifier extracts and compares, acc = whether it is right; written by "
        "hand from docs/rewards.md.", [], cases=dapo)
    golden_files.write_cases(
        folder / "verify" / "equivalence_cases.json",
        "expected = whether the response says the right answer; written by hand from "
        "docs/rewards.md.", [],
        cases=[{"gold": gold, "pred": response, "expected": same}
               for gold, response, same in EQUIVALENCE])
