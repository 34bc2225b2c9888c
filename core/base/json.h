// JSON as RFC 8259 has it, and no more: strict, with bounded depth and size, from anybody. For zarr.json.
//
// Numbers keep their text, so that what is read and written again is what it was. Objects keep the order of
// their members; a name may come once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cdd {

class Json {
 public:
  enum class Type : std::uint8_t { Null, Bool, Number, String, Array, Object };
  using Member = std::pair<std::string, Json>;

  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxValues = std::size_t{1} << 20;

  Json() = default;  // null
  static Json boolean(bool value);
  static Json number(std::uint64_t value);
  static Json number_text(std::string text);  // already as JSON has it
  static Json string(std::string text);       // UTF-8
  static Json array(std::vector<Json> items = {});
  static Json object(std::vector<Member> members = {});

  // Throws Error{Corrupt} with the offset of what is wrong.
  static Json parse(std::string_view text);

  Type type() const noexcept { return type_; }
  bool is_null() const noexcept { return type_ == Type::Null; }
  bool is_bool() const noexcept { return type_ == Type::Bool; }
  bool is_number() const noexcept { return type_ == Type::Number; }
  bool is_string() const noexcept { return type_ == Type::String; }
  bool is_array() const noexcept { return type_ == Type::Array; }
  bool is_object() const noexcept { return type_ == Type::Object; }

  bool as_bool() const noexcept { return text_ == "true"; }
  const std::string& text() const noexcept { return text_; }  // of a string or a number
  std::optional<std::uint64_t> as_natural() const noexcept;   // a number without sign, point and exponent
  const std::vector<Json>& items() const noexcept { return items_; }
  const std::vector<Member>& members() const noexcept { return members_; }

  // The member of this name, null where there is none or this is no object.
  const Json* find(std::string_view name) const noexcept;
  void add(std::string name, Json value) { members_.emplace_back(std::move(name), std::move(value)); }
  void push(Json value) { items_.push_back(std::move(value)); }

  // Two spaces a level; arrays of plain values on one line.
  std::string dump() const;

 private:
  void dump_to(std::string& out, std::size_t depth) const;

  Type type_ = Type::Null;
  std::string text_;
  std::vector<Json> items_;
  std::vector<Member> members_;
};

}  // namespace cdd
