"""cmake/unity_groups.py: files whose unnamed names could meet are never compiled together."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cmake"))

import unity_groups


def unnamed(body):
    return f"namespace pace {{\nnamespace {{\n{body}\n}}  // namespace\n}}\n"


class UnityGroupsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def groups(self, *texts):
        files = []
        for number, text in enumerate(texts):
            path = self.folder / f"{number}.cc"
            path.write_text(text)
            files.append(unity_groups.SourceFile(path))
        return unity_groups.groups_of(files)

    def test_files_without_common_names_share_a_group(self):
        self.assertEqual(self.groups(unnamed("int Load() { return 1; }"),
                                     unnamed("int Store() { return 2; }")), [[0, 1]])

    def test_the_same_unnamed_function_keeps_files_apart(self):
        self.assertEqual(self.groups(unnamed("int Load() { return 1; }"),
                                     unnamed("double Load(int x) { return x; }")), [[0], [1]])

    def test_constants_and_types_count(self):
        for body in ("constexpr int kSize = 3;", "struct Row { int x; };", "using Row = int;",
                     "enum class Row { kOne };", "constexpr int kSizes[] = {3};"):
            with self.subTest(body):
                self.assertEqual(self.groups(unnamed(body), unnamed(body)), [[0], [1]])

    def test_a_name_that_another_file_uses_keeps_them_apart(self):
        self.assertEqual(self.groups(unnamed("int Load() { return 1; }"),
                                     "int Two() { return Load(2); }"), [[0], [1]])

    def test_comments_texts_and_members_do_not_count(self):
        self.assertEqual(self.groups(unnamed("int Load() { return 1; }"),
                                     '// Load\nint Two(F f) { return f.Load("Load"); }'), [[0, 1]])

    def test_words_of_the_language_parameters_and_initialisers_do_not_count(self):
        body = ("constexpr size_t k{0} = std::string_view::npos;\n"
                "void Run{0}(int options = 0);\nRow{0}::Row{0}(int n) : rows_(n) {{}}")
        self.assertEqual(self.groups(unnamed(body.format("A")), unnamed(body.format("B"))), [[0, 1]])

    def test_bases_aliased_types_and_members_of_types_do_not_count(self):
        for one, two in (("class Row final : public Base {};", "class Column : public Base {};"),
                         ("using Row = Base;", "Base* column = nullptr;"),
                         ("using enum Base;", "Base column() { return Base::kOne; }"),
                         ("std::function<Base(int)> row;", "Base Two();"),
                         ("INSTANTIATE_TEST_SUITE_P(A, B, testing::ValuesIn(Base()));", "Base Two();"),
                         ("int Base() { return 1; }", "int Two() { return Row::Base(); }")):
            with self.subTest(one):
                self.assertEqual(self.groups(unnamed(one), unnamed(two)), [[0, 1]])

    def test_records_of_two_files_share_a_group(self):
        body = "template <typename V> void JsonKeys(V& v, Row{0}& row) {{}}"
        self.assertEqual(self.groups(unnamed(body.format("A")), unnamed(body.format("B"))), [[0, 1]])

    def test_groups_are_bounded(self):
        texts = [unnamed(f"int F{i}() {{ return 1; }}") for i in range(unity_groups.MAX_FILES + 1)]
        self.assertEqual([len(group) for group in self.groups(*texts)],
                         [unity_groups.MAX_FILES, 1])
        self.assertEqual(self.groups("\n" * unity_groups.MAX_LINES, "\n"), [[0], [1]])


if __name__ == "__main__":
    unittest.main()
