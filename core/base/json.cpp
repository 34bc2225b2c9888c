#include "core/base/json.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "core/base/error.h"

namespace cdd {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    Json value = this->value(0);
    skip_space();
    if (at_ != text_.size()) wrong("more text after the value");
    return value;
  }

 private:
  [[noreturn]] void wrong(const char* what) const {
    fail(ErrorCode::Corrupt, "JSON: %s at byte %zu of %zu", what, at_, text_.size());
  }
  bool is_at(char c) const noexcept { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) noexcept { return is_at(c) && ++at_ != 0; }
  void skip_space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  Json value(std::size_t depth) {
    if (depth > Json::kMaxDepth) wrong("nested too deeply");
    if (++values_ > Json::kMaxValues) wrong("too many values");
    skip_space();
    if (at_ == text_.size()) wrong("a value is missing");
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json::string(string());
      case 't':
        return word("true", Json::boolean(true));
      case 'f':
        return word("false", Json::boolean(false));
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Json word(std::string_view expected, Json value) {
    if (text_.substr(at_, expected.size()) != expected) wrong("an unknown word");
    at_ += expected.size();
    return value;
  }

  bool digits() noexcept {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ != first;
  }

  Json number() {
    const std::size_t first = at_;
    take('-');
    if (!take('0') && !digits()) wrong("neither a value nor a number");
    if (take('.') && !digits()) wrong("digits are missing after the point");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) wrong("digits are missing in the exponent");
    }
    return Json::number_text(std::string(text_.substr(first, at_ - first)));
  }

  unsigned hex4() {
    unsigned code = 0;
    const std::string_view four = text_.substr(at_, 4);
    const auto [stop, error] = std::from_chars(four.data(), four.data() + four.size(), code, 16);
    if (four.size() != 4 || error != std::errc{} || stop != four.data() + 4 || four[0] == '-') {
      wrong("\\u needs four hexadecimal digits");
    }
    at_ += 4;
    return code;
  }

  static void put_utf8(std::string& out, unsigned code) {
    const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xe0 | code >> 12);
      } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
      }
      put(0x80 | (code >> 6 & 0x3f));
    }
    put(0x80 | (code & 0x3f));
  }

  void escape(std::string& out) {
    if (at_ == text_.size()) wrong("the text ends in a string");
    const char c = text_[at_++];
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    if (const std::size_t found = kNames.find(c); found != std::string_view::npos) {
      return out.push_back(kValues[found]);
    }
    if (c != 'u') wrong("an unknown escape");
    unsigned code = hex4();
    if (code >= 0xdc00 && code < 0xe000) wrong("half of a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
      if (!take('\\') || !take('u')) wrong("half of a surrogate pair");
      const unsigned low = hex4();
      if (low < 0xdc00 || low >= 0xe000) wrong("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(out, code);
  }

  // The bytes of one character beyond ASCII, checked: no overlong forms, no surrogates, none above U+10FFFF.
  void utf8(std::string& out) {
    const auto byte = [&](std::size_t i) -> unsigned {
      return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0u;
    };
    const unsigned first = byte(0);
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    bool is_good = first >= 0xc2 && first <= 0xf4;
    for (std::size_t i = 1; i < length; ++i) is_good = is_good && (byte(i) & 0xc0) == 0x80;
    if (first == 0xe0) is_good = is_good && byte(1) >= 0xa0;
    if (first == 0xed) is_good = is_good && byte(1) < 0xa0;
    if (first == 0xf0) is_good = is_good && byte(1) >= 0x90;
    if (first == 0xf4) is_good = is_good && byte(1) < 0x90;
    if (!is_good) wrong("bytes that are not UTF-8");
    out.append(text_.substr(at_, length));
    at_ += length;
  }

  std::string string() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ == text_.size()) wrong("the text ends in a string");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return ++at_, out;
      if (c < 0x20) wrong("a control character in a string");
      if (c == '\\') {
        ++at_;
        escape(out);
      } else if (c < 0x80) {
        out.push_back(text_[at_++]);
      } else {
        utf8(out);
      }
    }
  }

  Json array(std::size_t depth) {
    ++at_;
    Json out = Json::array();
    skip_space();
    if (take(']')) return out;
    do {
      out.push(value(depth + 1));
      skip_space();
    } while (take(','));
    if (!take(']')) wrong("an array goes on with , or ]");
    return out;
  }

  Json object(std::size_t depth) {
    ++at_;
    Json out = Json::object();
    std::unordered_set<std::string> names;
    skip_space();
    if (take('}')) return out;
    do {
      skip_space();
      if (!is_at('"')) wrong("a member's name is missing");
      std::string name = string();
      if (!names.insert(name).second) wrong("a name that was there before ends");
      skip_space();
      if (!take(':')) wrong("a : is missing");
      out.add(std::move(name), value(depth + 1));
      skip_space();
    } while (take(','));
    if (!take('}')) wrong("an object goes on with , or }");
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

void dump_string(std::string& out, const std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (code < 0x20) {
      out.append("\\u00").append({kHex[code >> 4], kHex[code & 15]});
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace

Json Json::boolean(bool value) {
  Json out;
  out.type_ = Type::Bool;
  out.text_ = value ? "true" : "false";
  return out;
}

Json Json::number(std::uint64_t value) { return number_text(std::to_string(value)); }

Json Json::number_text(std::string text) {
  Json out;
  out.type_ = Type::Number;
  out.text_ = std::move(text);
  return out;
}

Json Json::string(std::string text) {
  Json out;
  out.type_ = Type::String;
  out.text_ = std::move(text);
  return out;
}

Json Json::array(std::vector<Json> items) {
  Json out;
  out.type_ = Type::Array;
  out.items_ = std::move(items);
  return out;
}

Json Json::object(std::vector<Member> members) {
  Json out;
  out.type_ = Type::Object;
  out.members_ = std::move(members);
  return out;
}

Json Json::parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    fail(ErrorCode::Corrupt, "JSON of %zu bytes, the limit is %zu", text.size(), kMaxBytes);
  }
  return Parser(text).document();
}

std::optional<std::uint64_t> Json::as_natural() const noexcept {
  if (!is_number()) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

const Json* Json::find(std::string_view name) const noexcept {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.first == name; });
  return found == members_.end() ? nullptr : &found->second;
}

std::string Json::dump() const {
  std::string out;
  dump_to(out, 0);
  out.push_back('\n');
  return out;
}

void Json::dump_to(std::string& out, std::size_t depth) const {
  const auto new_line = [&](std::size_t level) { out.append("\n").append(2 * level, ' '); };
  if (is_null()) {
    out.append("null");
  } else if (is_string()) {
    dump_string(out, text_);
  } else if (is_array()) {
    const bool is_plain = std::none_of(items_.begin(), items_.end(),
                                       [](const Json& item) { return item.is_array() || item.is_object(); });
    out.push_back('[');
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (i != 0) out.append(is_plain ? ", " : ",");
      if (!is_plain) new_line(depth + 1);
      items_[i].dump_to(out, depth + 1);
    }
    if (!is_plain) new_line(depth);
    out.push_back(']');
  } else if (is_object()) {
    out.push_back('{');
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (i != 0) out.push_back(',');
      new_line(depth + 1);
      dump_string(out, members_[i].first);
      out.append(": ");
      members_[i].second.dump_to(out, depth + 1);
    }
    if (!members_.empty()) new_line(depth);
    out.push_back('}');
  } else {
    out.append(text_);
  }
}

}  // namespace cdd
