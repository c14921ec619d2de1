// What is done to the text of kernels whose work-items share local memory, on small texts.
#include "kernels/source/source_items.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::kernels {
namespace {

TEST(SourceItems, ArraysOfAGroupBecomeAnItemsOwn) {
  std::string text =
      " float _sums_of_item_4_0[1024];\n"
      " _sums_of_item_4_0[_7] = 0;\n"
      " float _8 = _sums_of_item_4_0[_9];\n"
      " float _others[1024];\n";
  keep_items_apart(text);
  EXPECT_EQ(text,
            " float _sums_of_item_4_0[4];\n"
            " _sums_of_item_4_0[(_7) & 3] = 0;\n"
            " float _8 = _sums_of_item_4_0[(_9) & 3];\n"
            " float _others[1024];\n");
}

TEST(SourceItems, PlacesOfVectorsNeedNoShifts) {
  std::string text =
      " float _x_of_item_4[4];\n"
      " int _2 = _1 * 4;\n"
      " int _3 = _2 + 12;\n"
      " int _4 = _3 >> 2;\n"
      " int _5 = _2 + 6;\n"
      " int _6 = _5 >> 2;\n";
  shorten_vector_places(text);
  EXPECT_EQ(text,
            " float _x_of_item_4[4];\n"
            " int _2 = _1 * 4;\n"
            " int _3 = _2 + 12;\n"
            " int _4 = _1 + 3;\n"
            " int _5 = _2 + 6;\n"
            " int _6 = _5 >> 2;\n");
}

// The lines without those that are empty, and without indentation.
std::string bare(const std::string& text) {
  std::string result;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    const size_t first = text.find_first_not_of(' ', begin);
    if (first < end) result += text.substr(first, end - first) + "\n";
  }
  return result;
}

constexpr const char* kFetch =
    "   // produce fetched_ahead_of_item_2\n"
    "   int _1 = _k * 2;\n"
    "   float _2 = _a[_1];\n"
    "   _fetched_ahead_of_item_2[_0] = _2;\n";

TEST(SourceItems, EachIterationFetchesForTheNext) {
  std::string text = std::string(" {\n") +
                     "  for (int _k = 0; _k < _n; _k++)\n"
                     "  {\n" +
                     kFetch +
                     "   barrier(0);\n"
                     "   // produce part\n"
                     "   // consume fetched_ahead_of_item_2\n"
                     "   _part[_1] = _fetched_ahead_of_item_2[_0];\n"
                     "   barrier(1);\n"
                     "   // consume part\n"
                     "   _sum = _part[0];\n"
                     "   barrier(0);\n"
                     "  } // for _k\n"
                     " }\n";
  fetch_ahead(text);
  const std::string fetched =
      "{\n"
      "int _k = fetched_for;\n"
      "// produce fetched_ahead_of_item_2\n"
      "{\n"
      "int _1 = _k * 2;\n"
      "float _2 = _a[_1];\n"
      "_fetched_ahead_of_item_2[_0] = _2;\n"
      "}\n"
      "}\n"
      "}\n";
  EXPECT_EQ(bare(text),
            "{\n"
            "{\nint fetched_for = 0;\n" +
                fetched +
                "for (int _k = 0; _k < _n; _k++)\n"
                "{\n"
                "int _1 = _k * 2;\n"
                "// produce part\n"
                "// consume fetched_ahead_of_item_2\n"
                "_part[_1] = _fetched_ahead_of_item_2[_0];\n"
                "barrier(1);\n"
                "{\nint fetched_for = min(_k + 1, _n - 1);\n" +
                fetched +
                "// consume part\n"
                "_sum = _part[0];\n"
                "barrier(0);\n"
                "} // for _k\n"
                "}\n");
}

TEST(SourceItems, WhatIsWrittenInTurnsNeedsNoBarrierAtTheEnd) {
  std::string text = std::string(" {\n") +
                     "  for (int _k = 0; _k < _n; _k++)\n"
                     "  {\n" +
                     kFetch +
                     "   // produce part_in_turns\n"
                     "   // consume fetched_ahead_of_item_2\n"
                     "   _part_in_turns[_1] = _fetched_ahead_of_item_2[_0];\n"
                     "   barrier(1);\n"
                     "   // consume part_in_turns\n"
                     "   _sum = _part_in_turns[0];\n"
                     "   barrier(0);\n"
                     "  } // for _k\n"
                     " }\n";
  fetch_ahead(text);
  EXPECT_NE(text.find("barrier(1);"), std::string::npos);
  EXPECT_EQ(text.find("barrier(0);"), std::string::npos) << text;
}

TEST(SourceItems, VectorsOfAnItemAreItsOwn) {
  std::string text =
      "float _x_of_item_8[2048];\n"
      "((__private float4 *)_x_of_item_8)[_1] = _2;\n"
      "float _3 = _x_of_item_8[_4];\n";
  keep_items_apart(text);
  EXPECT_EQ(text,
            "float _x_of_item_8[8];\n"
            "((__private float4 *)_x_of_item_8)[(_1) & 1] = _2;\n"
            "float _3 = _x_of_item_8[(_4) & 7];\n");
}

TEST(SourceItems, RegistersAreAskedForOnce) {
  std::string text = "float _x_in_registers_128_of_item_8[8];\n_x_in_registers_128_of_item_8[0];\n";
  const std::string before = text;
  ask_for_registers(text);
  EXPECT_EQ(text, "#pragma ballast registers 128\n" + before);
  std::string other = "float _x_of_item_8[8];\n";
  ask_for_registers(other);
  EXPECT_EQ(other, "float _x_of_item_8[8];\n");
}

TEST(SourceItems, WithoutALoopNothingIsFetchedAhead) {
  std::string text = std::string(" {\n") + kFetch + "   // consume fetched_ahead_of_item_2\n }\n";
  const std::string before = text;
  fetch_ahead(text);
  EXPECT_EQ(text, before);
}

}  // namespace
}  // namespace ballast::kernels
