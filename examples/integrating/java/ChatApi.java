import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Executors;

/** An API that accepts customer tokens: `javac *.java && java ChatApi`. */
class ChatApi {
  public static void main(String[] parameters) throws IOException {
    String issuer = System.getenv("AUTH_URL");
    String keysUrl = System.getenv().getOrDefault("JWKS_URL", issuer + "/.well-known/jwks.json");
    String id = System.getenv("RESOURCE_SERVER_ID");
    String file = System.getenv().getOrDefault("ASSERTION_FILE", "");
    TokenVerifier.Credentials credentials = file.isEmpty()
        ? TokenVerifier.secret(id, System.getenv("RESOURCE_SERVER_SECRET"))
        : TokenVerifier.assertion(id, Path.of(file)); // the token of the platform
    TokenVerifier verifier = new TokenVerifier(issuer, keysUrl, System.getenv("REVOCATIONS_URL"), credentials, 60);
    verifier.start();
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9000"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/organizations/", exchange -> respond(exchange, verifier));
    server.start();
    System.err.println("listening on port " + server.getAddress().getPort());
  }

  private static void respond(HttpExchange exchange, TokenVerifier verifier) throws IOException {
    String header = exchange.getRequestHeaders().getFirst("Authorization");
    boolean isBearer = header != null && header.regionMatches(true, 0, "Bearer ", 0, 7);
    try {
      if (!isBearer) {
        exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer"); // no error code if there is no token
        exchange.sendResponseHeaders(401, -1);
        return;
      }
      Map<String, Object> claims = verifier.verify(header.substring(7));
      String path = "/organizations/" + claims.get("organization_id") + "/chats";
      boolean isFound = path.equals(exchange.getRequestURI().getPath());
      String customer = "customer " + claims.get("sub");
      boolean isAgent = claims.containsKey("act");
      String speaker = isAgent ? "agent " + Json.object(claims.get("act")).get("sub") + " for " + customer : customer;
      if (isFound) System.err.println("audit: " + speaker + " read chats (" + claims.get("gty") + ")");
      String isUser = String.valueOf(Boolean.TRUE.equals(claims.get("user_verified")));
      byte[] body = ("{\"customer\":\"" + claims.get("sub") + "\",\"isUser\":" + isUser + "}").getBytes();
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(isFound ? 200 : 404, isFound ? body.length : -1);
      if (isFound) exchange.getResponseBody().write(body);
    } catch (TokenVerifier.InvalidToken error) {
      System.err.println("token not accepted: " + error.getMessage()); // not in the response: it may help an attacker
      exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer error=\"invalid_token\"");
      exchange.sendResponseHeaders(401, -1);
    } catch (TokenVerifier.NotChecked error) {
      System.err.println("token not checked: " + error.getMessage());
      exchange.getResponseHeaders().set("Retry-After", String.valueOf(error.retryAfterSeconds));
      exchange.sendResponseHeaders(503, -1);
    } finally {
      exchange.close();
    }
  }
}
