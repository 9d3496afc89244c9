#include "task/word_stories.h"

#include <array>

namespace pace {
namespace {

using Texts = std::string_view[];
using Sentences = WordSentence[];
using Endings = WordEnding[];
constexpr WordTiming kAtOnce = WordTiming::kAtOnce;
constexpr WordTiming kAfter = WordTiming::kAfterEvents;
constexpr int64_t kAnyNumber = 1'000'000;
constexpr int64_t kOldest = 90;
constexpr int64_t kMostPassengers = 500;

// ---- things that somebody has ----

constexpr Texts kCollections = {"marbles",       "stickers", "stamps",  "shells",
                                "trading cards", "beads",    "buttons", "postcards"};
constexpr Sentences kCollectionOpenings = {
    {"{A} has {x} {0}.", "x"},
    {"{A} has {p} boxes with {x} {0} in each.", "px*"},
    {"{A} has {x} old {0} and {y} new ones.", "xy+"},
    {"{A} gets {x} {0} a month for {p} months.", "xp*"},
};
constexpr Sentences kCollectionEvents = {
    {"{B} gives {him} {x} more.", "x+"},
    {"{He} buys {x} more.", "x+"},
    {"{He} buys {p} packs with {x} {0} in each.", "px*+"},
    {"{He} gives {x} of them to {B}.", "x-"},
    {"{He} loses {x} of them.", "x-"},
};
constexpr Endings kCollectionEndings = {
    {"How many {0} does {A} have?", "", kAtOnce},
    {"How many {0} does {A} have now?", "", kAfter},
    {"{He} shares what {he} has equally among {p} friends. How many {0} does each friend get?",
     "p/"},
    {"{He} puts what {he} has into bags of {p}. How many bags does {he} fill?", "p/"},
    {"{He} fills as many bags of {p} as {he} can. How many {0} are left over?", "p%"},
    {"{He} wants to have {x} {0}. How many more does {he} need?", "x~"},
    {"{C} has {p} times as many {0} as {A}. How many {0} does {C} have?", "p*", kAtOnce},
    {"{C} has {x} fewer {0} than {A}. How many {0} does {C} have?", "x-", kAtOnce},
};

constexpr Texts kGoods = {"rolls|bakes|trays",     "cookies|bakes|trays", "apples|picks|baskets",
                          "pears|picks|crates",    "candles|makes|boxes", "muffins|bakes|trays",
                          "paper stars|makes|bags"};
constexpr Sentences kGoodsOpenings = {
    {"{A} {1} {p} {2} of {x} {0}.", "px*"},
    {"{A} {1} {x} {0} in the morning and {y} in the afternoon.", "xy+"},
    {"{A} {1} {x} {0} an hour for {p} hours.", "xp*"},
    {"{A} {1} {x} {0}.", "x"},
};
constexpr Sentences kGoodsEvents = {
    {"{He} sells {x} of them.", "x-"},
    {"{He} gives {x} of them to {his} neighbors.", "x-"},
    {"{B} brings {him} {x} more.", "x+"},
    {"{He} sells {p} bags with {x} {0} in each.", "px*-"},
};
constexpr Endings kGoodsEndings = {
    {"How many {0} does {he} have?", "", kAtOnce},
    {"How many {0} does {he} have now?", "", kAfter},
    {"{He} packs what {he} has into boxes of {p}. How many boxes does {he} fill?", "p/"},
    {"{He} fills as many boxes of {p} as {he} can. How many {0} are left over?", "p%"},
    {"{He} sells all of them for {p} dollars each. How many dollars does {he} earn?", "p*",
     kAtOnce},
    {"{He} needs {x} {0} for a party. How many are missing?", "x~"},
};

constexpr Texts kFinds = {"strawberries|picks|pick", "shells|finds|find",
                          "bottles|collects|collect", "flowers|picks|pick", "nuts|gathers|gather"};
constexpr Sentences kFindOpenings = {
    {"{A} {1} {x} {0}, and {B} {1} {y}.", "xy+"},
    {"{A} {1} {x} {0}. {B} {1} {y} more than {A}.", "xxy++"},
    {"{A} {1} {x} {0}, and {B} {1} {p} times as many.", "xxp*+"},
    {"{A} {1} {x} {0}, {B} {1} {y}, and {C} {1} {z}.", "xy+z+"},
};
constexpr Sentences kFindEvents = {
    {"Later, they {2} {x} more together.", "x+"},
    {"They give {x} of them away.", "x-"},
};
constexpr Endings kFindEndings = {
    {"How many {0} do they {2} in all?", "", kAtOnce},
    {"How many {0} do they have now?", "", kAfter},
    {"They share what they have equally among {p} people. How many {0} does each person get?",
     "p/"},
    {"They fill as many bags of {p} as they can. How many {0} are left over?", "p%"},
    {"They need {x} {0}. How many are missing?", "x~"},
};

// ---- money ----

constexpr Texts kWares = {"notebooks|pens", "T-shirts|caps", "cups|plates", "books|posters",
                          "toy cars|balls", "lemons|melons", "plants|pots"};
constexpr Sentences kWaresOpenings = {
    {"{A} buys {p} {0} for {x} dollars each.", "px*"},
    {"{A} buys a game for {x} dollars and a puzzle for {y} dollars.", "xy+"},
    {"{A} buys {p} {0} for {x} dollars each and {q} {1} for {y} dollars each.", "px*qy*+"},
};
constexpr Sentences kWaresEvents = {
    {"{He} also buys a lamp for {x} dollars.", "x+"},
    {"{He} also buys a jacket for {x} dollars.", "x+"},
    {"A coupon takes {x} dollars off.", "x-"},
};
constexpr Endings kWaresEndings = {
    {"How many dollars does {he} spend in all?", ""},
    {"{He} pays with {x} dollars. How many dollars does {he} get back?", "x~"},
    {"{He} had {x} dollars before shopping. How many dollars does {he} have left?", "x~"},
    {"The cost is shared equally by {p} friends. How many dollars does each friend pay?", "p/"},
};

constexpr Texts kWishes = {"a bike", "a tent", "a guitar", "a skateboard", "a camera", "an easel"};
constexpr Sentences kSavingsOpenings = {
    {"{A} has {x} dollars.", "x"},
    {"{A} saves {x} dollars a week for {p} weeks.", "xp*"},
    {"{A} works for {p} hours and earns {x} dollars an hour.", "px*"},
    {"{A} gets {x} dollars from {his} aunt and {y} dollars from {his} uncle.", "xy+"},
};
constexpr Sentences kSavingsEvents = {
    {"{He} earns {x} dollars for washing a car.", "x+"},
    {"{He} sells an old game for {x} dollars.", "x+"},
    {"{He} mows {p} lawns for {x} dollars each.", "px*+"},
    {"{He} spends {x} dollars on a book.", "x-"},
    {"{He} buys lunch for {x} dollars.", "x-"},
    {"{He} buys {p} tickets for {x} dollars each.", "px*-"},
};
constexpr Endings kSavingsEndings = {
    {"How many dollars does {he} have?", "", kAtOnce},
    {"How many dollars does {he} have now?", "", kAfter},
    {"{He} wants to buy {0} that costs {x} dollars. How many more dollars does {he} need?", "x~"},
    {"{He} divides the money equally among {p} jars. How many dollars are in each jar?", "p/"},
};

// ---- distance and time ----

constexpr Texts kTrips = {"kilometers|walks|walk", "miles|runs|run", "kilometers|cycles|cycle",
                          "miles|drives|drive", "miles|hikes|hike"};
constexpr Sentences kTripOpenings = {
    {"{A} {1} {x} {0} a day for {p} days.", "xp*"},
    {"{A} {1} {x} {0} in the morning and {y} {0} in the afternoon.", "xy+"},
    {"{A} {1} {x} {0}.", "x"},
};
constexpr Sentences kTripEvents = {
    {"After that, {he} {1} another {x} {0}.", "x+"},
    {"After a rest, {he} {1} {x} {0} more.", "x+"},
};
constexpr Endings kTripEndings = {
    {"How many {0} does {he} {2} in all?", ""},
    {"The whole trip is {x} {0} long. How many {0} are left?", "x~"},
    {"In all, {B} {1} {p} times as far as {A}. How many {0} does {B} {2}?", "p*"},
    {"In all, {B} {1} {x} {0} less than {A}. How many {0} does {B} {2}?", "x-"},
};

constexpr Texts kPastimes = {
    "practices the piano|practice the piano", "reads|read",   "paints|paint",
    "works in the garden|work in the garden", "dances|dance", "plays chess|play chess"};
constexpr Sentences kPastimeOpenings = {
    {"{A} {0} for {x} minutes a day, {p} days in a row.", "xp*"},
    {"{A} {0} for {x} minutes before lunch and for {y} minutes after lunch.", "xy+"},
    {"{A} {0} for {x} minutes.", "x"},
};
constexpr Sentences kPastimeEvents = {
    {"Later, {he} {0} for another {x} minutes.", "x+"},
    {"Then {he} {0} for {x} minutes more.", "x+"},
};
constexpr Endings kPastimeEndings = {
    {"How many minutes does {he} {1} in all?", ""},
    {"{His} goal is {x} minutes. How many more minutes does {he} need to reach it?", "x~"},
    {"In all, {B} {0} {p} times as long as {A}. How many minutes does {B} {1}?", "p*"},
};

constexpr Texts kNoVariant = {""};
constexpr Sentences kAgeOpenings = {
    {"{A} is {x} years old. {B} is {y} years older than {A}.", "xy+"},
    {"{A} is {x} years old. {B} is {y} years younger than {A}.", "xy-"},
    {"{A} is {x} years old. {B} is {p} times as old as {A}.", "xp*"},
};
constexpr Endings kAgeEndings = {
    {"How old is {B}?", ""},
    {"{C} is {x} years older than {B}. How old is {C}?", "x+"},
    {"{C} is {x} years younger than {B}. How old is {C}?", "x-"},
    {"How old will {B} be in {x} years?", "x+"},
};

// ---- groups ----

constexpr Texts kRooms = {"chairs|hall", "tables|restaurant", "desks|school", "stools|workshop"};
constexpr Sentences kRoomOpenings = {
    {"A {1} has {p} rows of {x} {0}.", "px*"},
    {"There are {x} {0} in a {1}.", "x"},
    {"A {1} has {x} {0} upstairs and {y} {0} downstairs.", "xy+"},
};
constexpr Sentences kRoomEvents = {
    {"Then {x} more {0} are brought in.", "x+"},
    {"Then {x} {0} are taken away.", "x-"},
    {"A truck brings {p} stacks with {x} {0} in each.", "px*+"},
};
constexpr Endings kRoomEndings = {
    {"How many {0} are there?", "", kAtOnce},
    {"How many {0} are there now?", "", kAfter},
    {"They are placed in {p} equal groups. How many {0} are in each group?", "p/"},
    {"Now {x} of the {0} are painted green. How many {0} are not green?", "x-"},
};

constexpr Texts kRides = {"bus|stop", "train|station", "ferry|pier"};
constexpr Sentences kRideOpenings = {
    {"A {0} leaves with {x} passengers.", "x"},
    {"A {0} leaves with {x} children and {y} adults on board.", "xy+"},
};
constexpr Sentences kRideEvents = {
    {"At the next {1}, {x} people get on.", "x+"},
    {"At the {1} by the market, {x} people get off.", "x-"},
    {"At the {1} by the lake, {x} people get on.", "x+"},
    {"At the {1} by the school, {x} people get off and {y} people get on.", "x-y+"},
};
constexpr Endings kRideEndings = {
    {"How many people are on the {0}?", "", kAtOnce},
    {"How many people are on the {0} now?", "", kAfter},
    {"Everybody sits, and the {0} has {x} seats. How many seats are empty?", "x~"},
};

constexpr Texts kVisits = {"museum", "zoo", "castle", "theater", "farm"};
constexpr Sentences kVisitOpenings = {
    {"Today, {p} teams of {x} people visit the {0}.", "px*"},
    {"A group of {x} children and {y} adults visits the {0}.", "xy+"},
    {"In the morning, {x} people visit the {0}.", "x"},
};
constexpr Sentences kVisitEvents = {
    {"Then {x} more people join them.", "x+"},
    {"At noon, {x} of them go home.", "x-"},
};
constexpr Endings kVisitEndings = {
    {"How many people visit the {0}?", "", kAtOnce},
    {"How many people are there now?", "", kAfter},
    {"Everybody there joins a group of {p}. How many groups are there?", "p/"},
    {"Each ticket costs {p} dollars. How many dollars do all the tickets cost?", "p*", kAtOnce},
    {"A guide has {x} maps and gives one to everybody there. How many maps are left?", "x~"},
};

constexpr Texts kClasses = {"class", "choir", "chess club", "swimming club"};
constexpr Sentences kClassOpenings = {
    {"There are {x} girls and {y} boys in a {0}.", "xy+"},
    {"There are {x} children in a {0}.", "x"},
    {"A {0} has {p} groups of {x} children.", "px*"},
};
constexpr Sentences kClassEvents = {
    {"Then {x} new children join.", "x+"},
    {"Then {x} children move away.", "x-"},
};
constexpr Endings kClassEndings = {
    {"How many children are in the {0}?", "", kAtOnce},
    {"How many children are in the {0} now?", "", kAfter},
    {"All its children form teams of {p}. How many teams are there?", "p/"},
    {"Each child gets {p} pencils. How many pencils is that in all?", "p*"},
    {"The teacher has {x} pencils and gives one to each child. How many pencils are left?", "x~"},
};

// ---- what is used up ----

constexpr Texts kParts = {"book|pages|reads|read", "poster|dots|colors|color",
                          "mosaic|tiles|lays|lay"};
constexpr Sentences kPartsOpenings = {{"A {0} has {x} {1}.", "x"}};
constexpr Sentences kPartsEvents = {
    {"{A} {2} {x} {1} on Friday.", "x-"},
    {"On the weekend, {A} {2} {x} {1}.", "x-"},
    {"Next month, {A} {2} {x} {1} a day for {p} days.", "xp*-"},
};
constexpr Endings kPartsEndings = {
    {"How many {1} are left to {3}?", "", kAfter},
    {"{He} {2} the rest in {p} days, the same number each day. How many {1} is that a day?", "p/",
     kAfter},
};

constexpr Texts kCords = {"rope", "ribbon", "wire", "cable"};
constexpr Sentences kCordOpenings = {
    {"A {0} is {x} meters long.", "x"},
    {"{A} joins {p} pieces of {0}, each {x} meters long.", "px*"},
};
constexpr Sentences kCordEvents = {
    {"{A} cuts off {x} meters.", "x-"},
    {"{A} cuts off {p} pieces of {x} meters each.", "px*-"},
};
constexpr Endings kCordEndings = {
    {"How many meters long is the {0}?", "", kAtOnce},
    {"How many meters of {0} are left?", "", kAfter},
    {"The whole {0} is cut into {p} equal pieces. How many meters long is each piece?", "p/",
     kAtOnce},
    {"The rest is cut into {p} equal pieces. How many meters long is each piece?", "p/", kAfter},
};

constexpr Texts kTanks = {"tank", "pool", "barrel"};
constexpr Sentences kTankOpenings = {
    {"There are {x} liters of water in a {0}.", "x"},
    {"{A} pours {p} buckets with {x} liters of water each into an empty {0}.", "px*"},
};
constexpr Sentences kTankEvents = {
    {"Rain adds {x} liters.", "x+"},
    {"Then {x} liters are used for the garden.", "x-"},
    {"A pump adds {x} liters a minute for {p} minutes.", "xp*+"},
};
constexpr Endings kTankEndings = {
    {"How many liters are in the {0}?", "", kAtOnce},
    {"How many liters are in the {0} now?", "", kAfter},
    {"The {0} can hold {x} liters. How many more liters fit in?", "x~"},
    {"All the water is filled into cans of {p} liters. How many cans are filled?", "p/"},
};

constexpr Texts kAnimals = {"horses|oats", "goats|hay", "cows|grass", "donkeys|straw"};
constexpr Sentences kAnimalOpenings = {
    {"On a farm, {p} {0} eat {x} kilograms of {1} each.", "px*"},
    {"The {0} of a farm eat {x} kilograms of {1} in the morning and {y} in the evening.", "xy+"},
};
constexpr Sentences kAnimalEvents = {
    {"The sheep eat another {x} kilograms of {1}.", "x+"},
};
constexpr Endings kAnimalEndings = {
    {"How many kilograms of {1} is that in all?", ""},
    {"The farm had {x} kilograms of {1}. How many kilograms are left?", "x~"},
    {"The next day, the animals eat {p} times as much. How many kilograms is that?", "p*"},
};

constexpr std::array kStories = std::to_array<WordStory>({
    {kCollections, kCollectionOpenings, kCollectionEvents, kCollectionEndings, kAnyNumber},
    {kGoods, kGoodsOpenings, kGoodsEvents, kGoodsEndings, kAnyNumber},
    {kFinds, kFindOpenings, kFindEvents, kFindEndings, kAnyNumber},
    {kWares, kWaresOpenings, kWaresEvents, kWaresEndings, kAnyNumber},
    {kWishes, kSavingsOpenings, kSavingsEvents, kSavingsEndings, kAnyNumber},
    {kTrips, kTripOpenings, kTripEvents, kTripEndings, kAnyNumber},
    {kPastimes, kPastimeOpenings, kPastimeEvents, kPastimeEndings, kAnyNumber},
    {kNoVariant, kAgeOpenings, {}, kAgeEndings, kOldest},
    {kRooms, kRoomOpenings, kRoomEvents, kRoomEndings, kAnyNumber},
    {kRides, kRideOpenings, kRideEvents, kRideEndings, kMostPassengers},
    {kVisits, kVisitOpenings, kVisitEvents, kVisitEndings, kAnyNumber},
    {kClasses, kClassOpenings, kClassEvents, kClassEndings, kMostPassengers},
    {kParts, kPartsOpenings, kPartsEvents, kPartsEndings, kAnyNumber},
    {kCords, kCordOpenings, kCordEvents, kCordEndings, kAnyNumber},
    {kTanks, kTankOpenings, kTankEvents, kTankEndings, kAnyNumber},
    {kAnimals, kAnimalOpenings, kAnimalEvents, kAnimalEndings, kAnyNumber},
});

constexpr std::array kPeople = std::to_array<WordPerson>({
    {"Mia", true},   {"Anna", true},  {"Lena", true},   {"Sara", true},    {"Nora", true},
    {"Emma", true},  {"Zoe", true},   {"Priya", true},  {"Rosa", true},    {"Hana", true},
    {"Grace", true}, {"Amina", true}, {"Tom", false},   {"Ben", false},    {"Paul", false},
    {"Omar", false}, {"Leo", false},  {"Max", false},   {"Ravi", false},   {"Jack", false},
    {"Noah", false}, {"Luis", false}, {"Kenji", false}, {"Daniel", false},
});

}  // namespace

std::span<const WordStory> WordStories() {
  return kStories;
}

std::span<const WordPerson> WordPeople() {
  return kPeople;
}

}  // namespace pace
