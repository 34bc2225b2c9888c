#include "core/dataset/asof.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/threads/for_each.h"

namespace cdd {
namespace {

// Blocks double as long as they follow each other: what is read after a jump may be of use for a few rows.
constexpr std::uint64_t kFirstRows = 1 << 10;
constexpr std::uint64_t kBlockRows = 1 << 16;
// Where a left row passes more blocks than this on the right, it looks its place up instead of reading on.
constexpr std::uint64_t kFarBlocks = 4;
constexpr std::size_t kTasksPerThread = 4;

// Sorted times, read block by block, and the place of one after the other in them.
template <class Time>
class Stream {
 public:
  Stream(const Rows& rows, std::uint64_t count, std::uint64_t factor)
      : rows_(rows), all_(count), factor_(factor) {}

  // The number of rows before the place of `time`, which no later call may undercut.
  std::uint64_t advance(Time time, Side side) {
    while (end_ == 0 || (end_ < all_ && is_before(block_.back(), time, side))) next_block(time, side);
    const auto from = block_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto found =
        std::partition_point(from, block_.end(), [&](Time t) { return is_before(t, time, side); });
    at_ = static_cast<std::size_t>(found - block_.begin());
    return first_ + at_ - kept_;
  }
  // Times beside the place of the last advance(). There must be such rows.
  Time before() const { return block_[at_ - 1]; }
  Time after() const { return block_[at_]; }

 private:
  static bool is_before(Time item, Time time, Side side) {
    return side == Side::Left ? item < time : !(time < item);
  }

  // The last time of a block stays before the next one's.
  void next_block(Time time, Side side) {
    std::uint64_t first = std::max(end_, place_to_go_on(time, side));
    const Time last = block_.empty() ? Time{} : block_.back();
    block_rows_ = first == end_ ? std::min(2 * block_rows_, kBlockRows) : kFirstRows;
    kept_ = first == end_ && first > 0 ? 1 : 0;
    if (kept_ == 0 && first > 0) --first;  // so that the time before the place is there
    const auto count = static_cast<std::size_t>(std::min(block_rows_, all_ - first));
    block_.resize(count + kept_);
    if (kept_ == 1) block_[0] = last;
    const std::span<Time> times = std::span(block_).subspan(kept_);
    rows_.read_into({first, count}, {as_bytes(times.data()), times.size_bytes()});
    scale(times);
    first_ = first;
    end_ = first + count;
    at_ = 0;
  }

  // Not after the wanted place: the next row, or where that is far ahead, or unknown at first, one that is
  // looked up.
  std::uint64_t place_to_go_on(Time time, Side side) {
    if (end_ > 0) {
      const std::uint64_t far = kFarBlocks * block_rows_;
      if (all_ - end_ <= far) return end_;
      Time probe{};
      rows_.read_into({end_ + far - 1, 1}, {as_bytes(&probe), sizeof probe});
      scale({&probe, 1});
      if (!is_before(probe, time, side)) return end_;
    }
    Time value = time / static_cast<Time>(factor_);
    if (factor_ > 1 && value > std::numeric_limits<Time>::min()) --value;  // division rounds towards 0
    std::uint64_t place = 0;
    rows_.search({as_bytes(&value), sizeof value}, Side::Left, {&place, 1});
    return std::min(place, all_);
  }

  void scale(std::span<Time> times) const {
    if (factor_ == 1) return;
    const Time most = std::numeric_limits<Time>::max() / static_cast<Time>(factor_);
    const Time least = std::numeric_limits<Time>::min() / static_cast<Time>(factor_);
    for (Time& time : times) {
      if (time > most || time < least) {
        fail(ErrorCode::InvalidArgument, "a time is too far from 1970 for the unit of the other clock");
      }
      time *= static_cast<Time>(factor_);
    }
  }

  const Rows& rows_;
  std::uint64_t all_;  // rows
  std::uint64_t factor_;
  std::uint64_t block_rows_ = kFirstRows / 2;  // of the last block
  std::vector<Time> block_;                    // rows [first_, end_), after kept_ times before them
  std::size_t kept_ = 0;
  std::size_t at_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

template <class Time>
std::uint64_t distance(Time earlier, Time later) {
  return static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier);
}

// The joined row of one time, given two streams over the right side.
template <class Time>
std::int64_t join_one(Time time, const AsOf& how, std::uint64_t right_rows, Stream<Time>& back,
                      Stream<Time>& ahead) {
  std::uint64_t back_place = 0, ahead_place = right_rows;
  if (how.direction != AsOf::Direction::Forward) {
    back_place = back.advance(time, how.exact ? Side::Right : Side::Left);
  }
  if (how.direction != AsOf::Direction::Backward) {
    ahead_place = ahead.advance(time, how.exact ? Side::Left : Side::Right);
  }
  bool takes_back = back_place > 0;
  bool takes_ahead = ahead_place < right_rows;
  const std::uint64_t back_by = takes_back ? distance(back.before(), time) : 0;
  const std::uint64_t ahead_by = takes_ahead ? distance(time, ahead.after()) : 0;
  takes_back = takes_back && back_by <= how.tolerance;
  takes_ahead = takes_ahead && ahead_by <= how.tolerance;
  if (takes_back && (!takes_ahead || back_by <= ahead_by)) return static_cast<std::int64_t>(back_place) - 1;
  return takes_ahead ? static_cast<std::int64_t>(ahead_place) : -1;
}

// The joins of one thread, whose times do not go back.
template <class Time>
class Join {
 public:
  Join(const Rows& left, const Rows& right, std::uint64_t right_rows, const AsOf& how)
      : left_(left),
        how_(how),
        right_rows_(right_rows),
        back_(right, right_rows, how.right_factor),
        ahead_(right, right_rows, how.right_factor) {}

  void range(RowRange range, std::int64_t* rows) {
    const auto factor = static_cast<Time>(how_.left_factor);
    const Time most = std::numeric_limits<Time>::max() / factor;
    const Time least = std::numeric_limits<Time>::min() / factor;
    for (std::uint64_t done = 0; done < range.count; done += times_.size()) {
      times_.resize(static_cast<std::size_t>(std::min(kBlockRows, range.count - done)));
      left_.read_into({range.first + done, times_.size()},
                      {as_bytes(times_.data()), times_.size() * sizeof(Time)});
      for (const Time time : times_) {
        if (time > most || time < least) {
          fail(ErrorCode::InvalidArgument, "a time is too far from 1970 for the unit of the other clock");
        }
        *rows++ = join_one(time * factor, how_, right_rows_, back_, ahead_);
      }
    }
  }

 private:
  const Rows& left_;
  const AsOf& how_;
  const std::uint64_t right_rows_;
  Stream<Time> back_, ahead_;
  std::vector<Time> times_;
};

// Of the rows that the ranges have together those from `begin` to `end`.
template <class Time>
void join_part(std::span<const RowRange> ranges, std::uint64_t begin, std::uint64_t end, Join<Time> join,
               std::int64_t* rows) {
  std::uint64_t at = 0;  // rows of the ranges before
  for (const RowRange& range : ranges) {
    const std::uint64_t first = std::max(begin, at), last = std::min(end, at + range.count);
    if (first < last) join.range({range.first + (first - at), last - first}, rows + first);
    at += range.count;
    if (at >= end) break;
  }
}

bool is_signed(const RowLayout& layout) {
  const Kind kind = layout.dtype().kind();
  if (layout.dims().size() == 0) {
    if (kind == Kind::Int64 || kind == Kind::Datetime64 || kind == Kind::Timedelta64) return true;
    if (kind == Kind::UInt64) return false;
  }
  fail(ErrorCode::InvalidArgument, "times are int64, uint64 or datetime64, not %s",
       to_string(layout).c_str());
}

}  // namespace

void join_asof(const Rows& left, std::span<const RowRange> ranges, const Rows& right, const AsOf& how,
               std::span<std::int64_t> rows) {
  std::uint64_t count = 0, end = 0;
  for (const RowRange& range : ranges) {
    check_range(range, left.rows());
    if (range.first < end) fail(ErrorCode::InvalidArgument, "ranges of rows overlap, or are not in order");
    end = range.first + range.count;
    count += range.count;
  }
  if (rows.size() != count) {
    fail(ErrorCode::InvalidArgument, "%llu rows do not fit %zu places",
         static_cast<unsigned long long>(count), rows.size());
  }
  const bool signed_times = is_signed(left.layout());
  if (signed_times != is_signed(right.layout())) {
    fail(ErrorCode::InvalidArgument, "times of %s and of %s do not compare", to_string(left.layout()).c_str(),
         to_string(right.layout()).c_str());
  }
  const std::uint64_t right_rows = right.rows();  // may grow
  if (right_rows == 0) return std::fill(rows.begin(), rows.end(), std::int64_t{-1});
  const std::size_t most = threads() > 1 ? threads() * kTasksPerThread : 1;
  const std::size_t tasks = std::min<std::size_t>(most, rows.size() / kBlockRows + 1);
  for_each(tasks, [&](std::size_t task) {
    const std::uint64_t first = count * task / tasks, last = count * (task + 1) / tasks;
    if (signed_times) {
      join_part<std::int64_t>(ranges, first, last, {left, right, right_rows, how}, rows.data());
    } else {
      join_part<std::uint64_t>(ranges, first, last, {left, right, right_rows, how}, rows.data());
    }
  });
}

}  // namespace cdd
