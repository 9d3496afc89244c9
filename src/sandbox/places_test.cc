#include "sandbox/places.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

namespace pace {
namespace {

TEST(PlacesTest, AreGivenUntilThereAreNoneLeft) {
  const FileDescriptor gone(::eventfd(1, EFD_CLOEXEC));
  const Result<Places> places = Places::Make(2);
  ASSERT_TRUE(places.ok());
  EXPECT_TRUE(*places->Take({}));
  EXPECT_TRUE(*places->Take({}));
  EXPECT_FALSE(*places->Take({.descriptor = gone.get()}));
  places->Give();
  EXPECT_TRUE(*places->Take({.descriptor = gone.get()})) << "a free place comes first";
}

TEST(PlacesTest, WaitingEndsWhenOneIsGiven) {
  const Result<Places> places = Places::Make(1);
  ASSERT_TRUE(places.ok());
  EXPECT_TRUE(*places->Take({}));
  std::thread other([&places] { places->Give(); });
  EXPECT_TRUE(*places->Take({}));
  other.join();
}

}  // namespace
}  // namespace pace
