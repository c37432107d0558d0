import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON, because the JDK does not. If your project has a library for JSON, use it in place of this class. */
final class Json {
  private static final int MAX_DEPTH = 50;
  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** Returns a Map, List, String, BigDecimal, Boolean or null. Throws an IllegalArgumentException. */
  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value();
    if (json.peek() != '\0') throw json.malformed();
    return value;
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> object(Object value) {
    if (value instanceof Map) return (Map<String, Object>) value;
    throw new IllegalArgumentException("no JSON object");
  }

  private Object value() {
    if (++depth > MAX_DEPTH) throw malformed();
    char next = peek();
    Object value = next == '{' ? object() : next == '[' ? list() : next == '"' ? string() : literal();
    depth--;
    return value;
  }

  private Map<String, Object> object() {
    Map<String, Object> object = new HashMap<>();
    for (expect('{'); peek() != '}'; skipComma('}')) {
      String name = string();
      expect(':');
      object.put(name, value());
    }
    at++;
    return object;
  }

  private List<Object> list() {
    List<Object> list = new ArrayList<>();
    for (expect('['); peek() != ']'; skipComma(']')) list.add(value());
    at++;
    return list;
  }

  private String string() {
    StringBuilder string = new StringBuilder();
    for (expect('"'); at < text.length() && text.charAt(at) != '"'; at++) {
      char next = text.charAt(at);
      string.append(next == '\\' ? escaped() : next);
    }
    expect('"');
    return string.toString();
  }

  private char escaped() {
    if (++at >= text.length()) throw malformed();
    char next = text.charAt(at);
    int index = "\"\\/bfnrt".indexOf(next);
    if (index >= 0) return "\"\\/\b\f\n\r\t".charAt(index);
    if (next != 'u' || at + 4 >= text.length()) throw malformed();
    at += 4;
    return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
  }

  private Object literal() {
    int start = at;
    while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
    String literal = text.substring(start, at);
    return switch (literal) {
      case "true" -> true;
      case "false" -> false;
      case "null" -> null;
      default -> new BigDecimal(literal);
    };
  }

  /** The next character that is no space, or '\0' at the end. */
  private char peek() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    return at < text.length() ? text.charAt(at) : '\0';
  }

  private void expect(char expected) {
    if (peek() != expected) throw malformed();
    at++;
  }

  private void skipComma(char end) {
    if (peek() == end) return;
    expect(',');
    if (peek() == end) throw malformed();
  }

  private IllegalArgumentException malformed() {
    return new IllegalArgumentException("malformed JSON");
  }
}
