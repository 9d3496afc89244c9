#include "sandbox/program_slots.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

namespace pace {
namespace {

TEST(ProgramSlotsTest, AreGivenUntilThereAreNoneLeft) {
  const FileDescriptor gone(::eventfd(1, EFD_CLOEXEC));
  const Result<ProgramSlots> slots = ProgramSlots::Make(2);
  ASSERT_TRUE(slots.ok());
  EXPECT_TRUE(*slots->Take({}));
  EXPECT_TRUE(*slots->Take({}));
  EXPECT_FALSE(*slots->Take({.descriptor = gone.get()}));
  slots->Give();
  EXPECT_TRUE(*slots->Take({.descriptor = gone.get()})) << "a free slot comes first";
}

TEST(ProgramSlotsTest, WaitingEndsWhenOneIsGiven) {
  const Result<ProgramSlots> slots = ProgramSlots::Make(1);
  ASSERT_TRUE(slots.ok());
  EXPECT_TRUE(*slots->Take({}));
  std::thread other([&slots] { slots->Give(); });
  EXPECT_TRUE(*slots->Take({}));
  other.join();
}

}  // namespace
}  // namespace pace
