// The commands, words and characters that MathLexer knows.
#include <algorithm>
#include <map>

#include "reward/equivalence/math_lexer.h"

namespace pace::equiv {
namespace {

using enum MathToken;

constexpr KnownWord kCommands[] = {
    // dropped
    {",", kEnd, "", true},
    {":", kEnd, "", true},
    {";", kEnd, "", true},
    {"!", kEnd, "", true},
    {" ", kEnd, "", true},
    {"$", kEnd, "", true},
    {"quad", kEnd, "", true},
    {"qquad", kEnd, "", true},
    {"thinspace", kEnd, "", true},
    {"medspace", kEnd, "", true},
    {"thickspace", kEnd, "", true},
    {"negthinspace", kEnd, "", true},
    {"negmedspace", kEnd, "", true},
    {"negthickspace", kEnd, "", true},
    {"displaystyle", kEnd, "", true},
    {"textstyle", kEnd, "", true},
    {"scriptstyle", kEnd, "", true},
    {"limits", kEnd, "", true},
    {"nolimits", kEnd, "", true},
    {"hline", kEnd, "", true},
    {"left", kEnd, "", true},
    {"right", kEnd, "", true},
    {"mleft", kEnd, "", true},
    {"mright", kEnd, "", true},
    {"big", kEnd, "", true},
    {"Big", kEnd, "", true},
    {"bigg", kEnd, "", true},
    {"Bigg", kEnd, "", true},
    {"bigl", kEnd, "", true},
    {"bigr", kEnd, "", true},
    {"Bigl", kEnd, "", true},
    {"Bigr", kEnd, "", true},
    {"biggl", kEnd, "", true},
    {"biggr", kEnd, "", true},
    {"Biggl", kEnd, "", true},
    {"Biggr", kEnd, "", true},
    {"boxed", kEnd, "", true},
    {"fbox", kEnd, "", true},
    {"rm", kEnd, "", true},
    {"bf", kEnd, "", true},
    {"it", kEnd, "", true},
    // operators
    {"pm", kPlusMinus, ""},
    {"mp", kMinusPlus, ""},
    {"times", kTimes, ""},
    {"cdot", kTimes, ""},
    {"ast", kTimes, ""},
    {"bullet", kTimes, ""},
    {"div", kSlash, ""},
    {"mod", kModulo, ""},
    {"bmod", kModulo, ""},
    {"over", kOver, ""},
    {"choose", kChoose, ""},
    {"frac", kFraction, ""},
    {"dfrac", kFraction, ""},
    {"tfrac", kFraction, ""},
    {"cfrac", kFraction, ""},
    {"sqrt", kRoot, ""},
    {"binom", kBinomial, ""},
    {"dbinom", kBinomial, ""},
    {"tbinom", kBinomial, ""},
    {"sum", kSum, ""},
    {"prod", kProduct, ""},
    {"%", kPercent, ""},
    {"circ", kDegree, ""},
    {"degree", kDegree, ""},
    {"prime", kPrime, "'"},
    // brackets
    {"{", kOpen, "S"},
    {"}", kClose, "S"},
    {"lbrace", kOpen, "S"},
    {"rbrace", kClose, "S"},
    {"(", kOpen, "("},
    {")", kClose, ")"},
    {"lgroup", kOpen, "("},
    {"rgroup", kClose, ")"},
    {"[", kOpen, "["},
    {"]", kClose, "]"},
    {"lbrack", kOpen, "["},
    {"rbrack", kClose, "]"},
    {"langle", kOpen, "("},
    {"rangle", kClose, ")"},
    {"vert", kBar, ""},
    {"lvert", kBar, ""},
    {"rvert", kBar, ""},
    {"|", kBar, ""},
    {"Vert", kBar, ""},
    {"lfloor", kFloorOpen, ""},
    {"rfloor", kFloorClose, ""},
    {"lceil", kCeilOpen, ""},
    {"rceil", kCeilClose, ""},
    // relations and sets
    {"approx", kApproximate, ""},
    {"simeq", kApproximate, ""},
    {"equiv", kEqual, ""},
    {"ne", kUnequal, ""},
    {"neq", kUnequal, ""},
    {"lt", kLess, ""},
    {"le", kLessEqual, ""},
    {"leq", kLessEqual, ""},
    {"leqslant", kLessEqual, ""},
    {"leqq", kLessEqual, ""},
    {"gt", kGreater, ""},
    {"ge", kGreaterEqual, ""},
    {"geq", kGreaterEqual, ""},
    {"geqslant", kGreaterEqual, ""},
    {"geqq", kGreaterEqual, ""},
    {"in", kIn, ""},
    {"notin", kNotIn, ""},
    {"cup", kUnion, ""},
    {"cap", kIntersection, ""},
    {"setminus", kSetMinus, ""},
    {"backslash", kSetMinus, ""},
    {"emptyset", kEmptySet, ""},
    {"varnothing", kEmptySet, ""},
    // constants and letters
    {"pi", kPi, ""},
    {"infty", kInfinity, ""},
    {"alpha", kSymbol, "alpha"},
    {"beta", kSymbol, "beta"},
    {"gamma", kSymbol, "gamma"},
    {"Gamma", kSymbol, "gamma"},
    {"delta", kSymbol, "delta"},
    {"Delta", kSymbol, "delta"},
    {"epsilon", kSymbol, "epsilon"},
    {"varepsilon", kSymbol, "varepsilon"},
    {"zeta", kSymbol, "zeta"},
    {"eta", kSymbol, "eta"},
    {"theta", kSymbol, "theta"},
    {"Theta", kSymbol, "theta"},
    {"vartheta", kSymbol, "vartheta"},
    {"iota", kSymbol, "iota"},
    {"kappa", kSymbol, "kappa"},
    {"lambda", kSymbol, "lambda"},
    {"Lambda", kSymbol, "lambda"},
    {"mu", kSymbol, "mu"},
    {"nu", kSymbol, "nu"},
    {"xi", kSymbol, "xi"},
    {"Xi", kSymbol, "xi"},
    {"Pi", kSymbol, "bigpi"},
    {"rho", kSymbol, "rho"},
    {"varrho", kSymbol, "varrho"},
    {"sigma", kSymbol, "sigma"},
    {"Sigma", kSymbol, "sigma"},
    {"tau", kSymbol, "tau"},
    {"upsilon", kSymbol, "upsilon"},
    {"phi", kSymbol, "phi"},
    {"Phi", kSymbol, "phi"},
    {"varphi", kSymbol, "varphi"},
    {"chi", kSymbol, "chi"},
    {"psi", kSymbol, "psi"},
    {"Psi", kSymbol, "psi"},
    {"omega", kSymbol, "omega"},
    {"Omega", kSymbol, "omega"},
    {"ell", kSymbol, "ell"},
    {"hbar", kSymbol, "hbar"},
    {"angle", kSymbol, "angle"},
    {"triangle", kSymbol, "triangle"},
    {"square", kSymbol, "square"},
    {"nabla", kSymbol, "nabla"},
    {"ldots", kSymbol, "dots"},
    {"cdots", kSymbol, "dots"},
    {"dots", kSymbol, "dots"},
    {"dotsb", kSymbol, "dots"},
    {"imath", kLetter, "i"},
    {"jmath", kLetter, "j"},
    {"top", kLetter, "T"},
};

// Commands that a shorter known one must not be read into ("\\int" is not
// "\\in" and "t"); a text that holds one is not read at all.
constexpr std::string_view kNotRead[] = {
    "int",
    "iint",
    "oint",
    "lim",
    "to",
    "rightarrow",
    "leftarrow",
    "Rightarrow",
    "Leftarrow",
    "leftrightarrow",
    "mapsto",
    "longrightarrow",
    "Longrightarrow",
    "Leftrightarrow",
    "implies",
    "iff",
    "mid",
    "neg",
    "nexists",
    "item",
    "therefore",
    "because",
    "leftharpoonup",
    "rightharpoonup",
    "rightleftharpoons",
    "inf",
    "limsup",
    "liminf",
    "begin",
    "end",
    "tag",
    "pitchfork",
    "notag",
    "label",
    "leftmargin",
    "xrightarrow",
};

constexpr std::string_view kFunctionNames[] = {
    "sin",     "cos",     "tan",     "csc",   "sec",  "cot",  "arcsin", "arccos", "arctan",
    "arccsc",  "arcsec",  "arccot",  "sinh",  "cosh", "tanh", "arsinh", "arcosh", "artanh",
    "arcsinh", "arccosh", "arctanh", "log",   "ln",   "lg",   "exp",    "max",    "min",
    "gcd",     "lcm",     "det",     "floor", "ceil", "Re",   "Im",     "arg",
};

constexpr KnownWord kBareWords[] = {
    {"asin", kFunction, "arcsin"},
    {"acos", kFunction, "arccos"},
    {"atan", kFunction, "arctan"},
    {"asinh", kFunction, "arsinh"},
    {"acosh", kFunction, "arcosh"},
    {"atanh", kFunction, "artanh"},
    {"pi", kPi, ""},
    {"sqrt", kRoot, "bare"},
    {"infty", kInfinity, ""},
    {"inf", kInfinity, ""},
    {"infinity", kInfinity, ""},
};

constexpr KnownWord kCharacters[] = {
    {"\u2212", kMinus, ""},         {"\u2013", kMinus, ""},        {"\u00d7", kTimes, ""},
    {"\u00b7", kTimes, ""},         {"\u22c5", kTimes, ""},        {"\u2217", kTimes, ""},
    {"\u00f7", kSlash, ""},         {"\u2215", kSlash, ""},        {"\u2044", kSlash, ""},
    {"\u2264", kLessEqual, ""},     {"\u2a7d", kLessEqual, ""},    {"\u2265", kGreaterEqual, ""},
    {"\u2a7e", kGreaterEqual, ""},  {"\u2260", kUnequal, ""},      {"\u2248", kApproximate, ""},
    {"\u2261", kEqual, ""},         {"\u2208", kIn, ""},           {"\u2209", kNotIn, ""},
    {"\u222a", kUnion, ""},         {"\u2229", kIntersection, ""}, {"\u2216", kSetMinus, ""},
    {"\u2205", kEmptySet, ""},      {"\u00b1", kPlusMinus, ""},    {"\u2213", kMinusPlus, ""},
    {"\u221e", kInfinity, ""},      {"\u03c0", kPi, ""},           {"\u221a", kRoot, "bare"},
    {"\u00b0", kDegree, ""},        {"\u2032", kPrime, "'"},       {"\u211d", kNamedSet, "R"},
    {"\u2115", kNamedSet, "N"},     {"\u2124", kNamedSet, "Z"},    {"\u211a", kNamedSet, "Q"},
    {"\u2102", kNamedSet, "C"},     {"\u03b1", kSymbol, "alpha"},  {"\u03b2", kSymbol, "beta"},
    {"\u03b3", kSymbol, "gamma"},   {"\u03b4", kSymbol, "delta"},  {"\u0394", kSymbol, "delta"},
    {"\u03b5", kSymbol, "epsilon"}, {"\u03b8", kSymbol, "theta"},  {"\u03bb", kSymbol, "lambda"},
    {"\u03bc", kSymbol, "mu"},      {"\u03c1", kSymbol, "rho"},    {"\u03c3", kSymbol, "sigma"},
    {"\u03c4", kSymbol, "tau"},     {"\u03c6", kSymbol, "phi"},    {"\u03c8", kSymbol, "psi"},
    {"\u03c9", kSymbol, "omega"},   {"\u03a9", kSymbol, "omega"},  {"\u2220", kSymbol, "angle"},
    {"\u20ac", kEnd, "", true},     {"\u00a3", kEnd, "", true},    {"\u00a5", kEnd, "", true},
    {"\u00a0", kEnd, "", true},     {"\u2009", kEnd, "", true},    {"\u202f", kEnd, "", true},
    {"\u200b", kEnd, "", true},
};

using WordMap = std::map<std::string_view, KnownWord>;

void AddFunctions(WordMap& words) {
  for (const std::string_view name : kFunctionNames) words[name] = {name, kFunction, name, false};
}

const WordMap& Commands() {
  static const WordMap commands = [] {
    WordMap words;
    for (const KnownWord& word : kCommands) words[word.name] = word;
    for (const std::string_view name : kNotRead) words[name] = {name, kEnd, "", false};
    AddFunctions(words);
    return words;
  }();
  return commands;
}

const WordMap& BareWords() {
  static const WordMap bare = [] {
    WordMap words;
    for (const KnownWord& word : kBareWords) words[word.name] = word;
    AddFunctions(words);
    return words;
  }();
  return bare;
}

const KnownWord* Find(const WordMap& words, std::string_view name) {
  const auto found = words.find(name);
  return found == words.end() ? nullptr : &found->second;
}

}  // namespace

const KnownWord* FindCommand(std::string_view letters) {
  constexpr size_t kLongest = 16;
  for (size_t size = std::min(letters.size(), kLongest); size > 0; --size) {
    const KnownWord* found = Find(Commands(), letters.substr(0, size));
    if (found != nullptr) return found;
  }
  return nullptr;
}

const KnownWord* FindBareWord(std::string_view word) {
  return Find(BareWords(), word);
}

const KnownWord* FindCharacter(std::string_view character) {
  const KnownWord* found =
      std::find_if(std::begin(kCharacters), std::end(kCharacters),
                   [&character](const KnownWord& known) { return known.name == character; });
  return found == std::end(kCharacters) ? nullptr : found;
}

}  // namespace pace::equiv
