import java.io.IOException;
import java.math.BigInteger;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Verifies customer tokens without a request per token, and follows the revocation feed. Needs Json.java and no library. */
class TokenVerifier {
  /** Respond with 401. */
  static class InvalidToken extends Exception {
    InvalidToken(String reason) {
      super(reason);
    }
  }

  /** Respond with 503, and these seconds as Retry-After. A 401 would make callers drop valid tokens. */
  static class NotChecked extends Exception {
    final long retryAfterSeconds;

    NotChecked(String reason, long retryAfterSeconds) {
      super(reason);
      this.retryAfterSeconds = retryAfterSeconds;
    }
  }

  /** The longer time of both clocks counts: one stops while a machine is suspended, and the other may be set back. */
  private record Moment(long wallMs, long nanos) {
    static final Moment NEVER = new Moment(Long.MIN_VALUE / 2, 0);

    static Moment now() {
      return new Moment(System.currentTimeMillis(), System.nanoTime());
    }

    double ageSeconds() {
      return Math.max((System.currentTimeMillis() - wallMs) / 1e3, (System.nanoTime() - nanos) / 1e9);
    }

    Moment minus(long seconds) {
      return new Moment(wallMs - seconds * 1000, nanos - seconds * 1_000_000_000);
    }
  }

  /** `freshAt` is earlier than `sentAt` if a cache responded. */
  private record Keys(Map<String, PublicKey> byId, Moment sentAt, Moment freshAt) {}

  /** Ends the tokens with a lower epoch, generation or issue time. */
  private record Revocation(long limit, long expiresAtMs) {}

  private record Page(Map<String, Object> body, long ageSeconds) {}

  private static class StatusException extends IOException {
    final int status;

    StatusException(int status) {
      super("status " + status);
      this.status = status;
    }
  }

  private static final int REFRESH_KEYS_SECONDS = 300;
  private static final int MAX_KEYS_SECONDS = 3600;
  private static final int KEYS_PAUSE_SECONDS = 30; // so soon after a fetch, an unknown key causes no other one
  private static final int MAX_UNKNOWN_KEYS = 100; // callers can invent any number of ids
  private static final int CLOCK_SKEW_SECONDS = 30; // how far the clock of the service may be ahead; nothing for `exp`
  private static final int MAX_TOKEN_CHARACTERS = 8192;
  private static final int MAX_ENTRIES = 5_000_000;
  private static final int TIMEOUT_SECONDS = 5;
  private static final int MAX_WAIT_SECONDS = 25;
  private static final int MAX_PAUSE_MS = 30_000;
  private static final int EXPIRY_MARGIN_MS = 60_000; // entries stay so long after their end: the clock may be set back
  /** A region, which standard libraries do not accept, and a JWS whose signature has no unused bits. */
  private static final Pattern TOKEN =
      Pattern.compile("(?:[A-Za-z0-9-]{1,16}:)?(([\\w-]+)\\.([\\w-]+))\\.([\\w-]{85}[AQgw])");
  /** For each kind of entry the field with its limit. */
  private static final Map<String, String> LIMITS = Map.of("session", "epoch", "subject", "generation",
      "client", "issued_before", "organization", "issued_before", "token", "issued_before");

  private final HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(TIMEOUT_SECONDS)).build();
  private final String issuer;
  private final String keysUrl;
  private final String feedUrl;
  private final Credentials credentials;
  private final int maxAgeSeconds;
  private volatile Keys keys = new Keys(Map.of(), Moment.NEVER, Moment.NEVER);
  private final Map<String, Moment> unknownKeys = new ConcurrentHashMap<>(); // when a token named the key first
  private final Map<String, Revocation> ended = new ConcurrentHashMap<>(); // by kind and value
  private volatile Moment syncedAt = Moment.NEVER;
  private volatile long purgedAtMs;
  private volatile long incompleteUntilMs;
  private String cursor = "";
  private boolean isCaughtUp;

  TokenVerifier(String issuer, String keysUrl, String feedUrl, Credentials credentials, int maxAgeSeconds) {
    this.issuer = issuer;
    this.keysUrl = keysUrl;
    this.feedUrl = feedUrl;
    this.credentials = credentials;
    this.maxAgeSeconds = maxAgeSeconds;
  }

  /** A form that proves to the feed who the API is. Nothing else does. */
  interface Credentials {
    String form() throws IOException;
  }

  static Credentials secret(String id, String secret) {
    return () -> "client_id=" + encode(id) + "&client_secret=" + encode(secret);
  }

  /** The token of a platform (RFC 7523, section 2.2). The file is read for each request, because the platform replaces it. */
  static Credentials assertion(String id, Path file) {
    String type = encode("urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    String parameters = "client_id=" + encode(id) + "&client_assertion_type=" + type + "&client_assertion=";
    return () -> parameters + encode(Files.readString(file).strip());
  }

  private static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }

  /** Fetches the keys and follows the feed in two threads, once in each process. */
  void start() {
    startThread(this::fetchKeys);
    startThread(this::readFeed);
  }

  /** Whether the list of revocations is complete and not too old. */
  boolean isCurrent() {
    return syncedAt.ageSeconds() <= maxAgeSeconds && System.currentTimeMillis() >= incompleteUntilMs && !isSetBack();
  }

  /**
   * Returns the claims of a valid token. If `act` is among them, this agent speaks, and not the customer.
   * `Boolean.TRUE.equals(claims.get("user_verified"))` says that the customer is a user of the organization.
   */
  Map<String, Object> verify(String token) throws InvalidToken, NotChecked {
    Matcher parts = TOKEN.matcher(token);
    if (token.length() > MAX_TOKEN_CHARACTERS || !parts.matches()) throw new InvalidToken("malformed");
    try {
      Map<String, Object> header = decode(parts.group(2));
      boolean isAccessToken = "at+jwt".equals(header.get("typ")) && "ES256".equals(header.get("alg"));
      if (!isAccessToken || header.containsKey("crit")) throw new InvalidToken("not an access token");
      Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
      signature.initVerify(keyOf((String) header.get("kid")));
      signature.update(parts.group(1).getBytes(StandardCharsets.US_ASCII));
      if (!signature.verify(Base64.getUrlDecoder().decode(parts.group(4)))) throw new InvalidToken("signature");
      Map<String, Object> claims = decode(parts.group(3));
      check(claims);
      return claims;
    } catch (GeneralSecurityException | IllegalArgumentException | ClassCastException | NullPointerException error) {
      throw new InvalidToken("malformed: " + error);
    }
  }

  private void check(Map<String, Object> claims) throws InvalidToken, NotChecked {
    long seconds = System.currentTimeMillis() / 1000;
    long issuedAt = number(claims, "iat");
    if (!issuer.equals(claims.get("iss"))) throw new InvalidToken("other issuer");
    if (!"customer-api".equals(claims.get("aud"))) throw new InvalidToken("other audience");
    if (seconds >= number(claims, "exp")) throw new InvalidToken("expired");
    long notBefore = claims.containsKey("nbf") ? number(claims, "nbf") : issuedAt;
    if (Math.max(issuedAt, notBefore) > seconds + CLOCK_SKEW_SECONDS) throw new InvalidToken("not yet valid");
    Map<String, Object> act = claims.containsKey("act") ? Json.object(claims.get("act")) : Map.of();
    boolean hasEnded = ends("token", text(claims, "jti"), 0)
        || ends("client", text(claims, "client_id"), issuedAt)
        || ends("organization", text(claims, "organization_id"), issuedAt)
        || ends("subject", text(claims, "sub"), count(claims, "gen"))
        || (claims.containsKey("sid") && ends("session", text(claims, "sid"), count(claims, "ep")))
        || (claims.containsKey("act") && ends("session", text(act, "sid"), count(act, "ep")));
    if (hasEnded) throw new InvalidToken("ended");
    if (!isCurrent()) throw new NotChecked("the revocations are too old, or were not read yet", TIMEOUT_SECONDS);
  }

  private boolean ends(String kind, String value, long number) {
    Revocation revocation = ended.get(kind + " " + value);
    return revocation != null && number < revocation.limit;
  }

  /** An unknown key causes a fetch, at most every 30 s. */
  private PublicKey keyOf(String id) throws InvalidToken, NotChecked {
    Keys known = keys;
    if (known.freshAt.ageSeconds() > MAX_KEYS_SECONDS) throw new NotChecked("the keys were not fetched", TIMEOUT_SECONDS);
    PublicKey key = known.byId.get(id);
    if (key != null) return key;
    if (unknownKeys.size() >= MAX_UNKNOWN_KEYS) unknownKeys.clear();
    Moment firstSeen = unknownKeys.computeIfAbsent(id, each -> Moment.now());
    if (firstSeen.nanos - known.freshAt.nanos < 0) throw new InvalidToken("unknown key");
    // the service may have published the key since the last fetch
    throw new NotChecked("unknown key", Math.max(0, (long) (KEYS_PAUSE_SECONDS - known.sentAt.ageSeconds())) + 1);
  }

  private long fetchKeys() throws Exception {
    double ageSeconds = keys.sentAt.ageSeconds();
    boolean isWanted = unknownKeys.values().stream().anyMatch(firstSeen -> firstSeen.ageSeconds() < ageSeconds);
    if (ageSeconds < KEYS_PAUSE_SECONDS || (ageSeconds < REFRESH_KEYS_SECONDS && !isWanted)) return 1000;
    Moment sentAt = Moment.now();
    Page page = fetch(keysUrl, null, TIMEOUT_SECONDS);
    Map<String, PublicKey> byId = new HashMap<>();
    for (Object each : (List<?>) page.body.get("keys")) {
      Map<String, Object> jwk = Json.object(each);
      if ("P-256".equals(jwk.get("crv"))) byId.put(text(jwk, "kid"), publicKey(text(jwk, "x"), text(jwk, "y")));
    }
    keys = new Keys(byId, sentAt, sentAt.minus(page.ageSeconds));
    return 1000;
  }

  /** Returns the milliseconds until the next request. */
  private long readFeed() throws Exception {
    if (isSetBack()) { // deleted entries hold again
      cursor = "";
      isCaughtUp = false;
      syncedAt = Moment.NEVER;
      purgedAtMs = 0;
    }
    int wait = isCaughtUp ? Math.min(MAX_WAIT_SECONDS, maxAgeSeconds / 3) : 0; // the age counts from the request
    isCaughtUp = false; // if this request fails, the next one does not wait, so that its response ends the outage
    String after = cursor.isEmpty() ? "" : "&after=" + encode(cursor);
    Moment sentAt = Moment.now();
    Page page;
    try {
      page = fetch(feedUrl, credentials.form() + "&wait=" + wait + after, wait + TIMEOUT_SECONDS);
    } catch (StatusException error) {
      if (error.status == 400 || error.status == 410) cursor = ""; // the service does not know it: read everything again
      throw error;
    }
    purge();
    for (Object each : (List<?>) page.body.get("revocations")) add(Json.object(each));
    boolean hasAdvanced = !text(page.body, "cursor").equals(cursor);
    cursor = text(page.body, "cursor");
    isCaughtUp = (Boolean) page.body.get("complete");
    if (!isCaughtUp) return hasAdvanced ? 0 : 1000;
    syncedAt = sentAt.minus(page.ageSeconds);
    return hasAdvanced || sentAt.ageSeconds() > wait / 2.0 ? 200 : 1000;
  }

  private void add(Map<String, Object> entry) {
    String kind = text(entry, "kind");
    String key = kind + " " + text(entry, "value");
    long expiresAtMs = timeMs(entry, "expires_at");
    String field = LIMITS.getOrDefault(kind, "");
    boolean isKnown = entry.size() == 4 && entry.containsKey(field);
    if (!isKnown || (ended.size() >= MAX_ENTRIES && !ended.containsKey(key))) { // what it ends is not known, or not stored
      incompleteUntilMs = Math.max(incompleteUntilMs, expiresAtMs);
      return;
    }
    // the tokens of this second, too
    long limit = field.equals("issued_before") ? timeMs(entry, field) / 1000 + 1 : number(entry, field);
    ended.merge(key, new Revocation(limit, expiresAtMs), (one, other) ->
        new Revocation(Math.max(one.limit, other.limit), Math.max(one.expiresAtMs, other.expiresAtMs)));
  }

  private void purge() {
    long now = System.currentTimeMillis();
    if (now - purgedAtMs < EXPIRY_MARGIN_MS) return;
    purgedAtMs = now;
    ended.values().removeIf(revocation -> revocation.expiresAtMs < now - EXPIRY_MARGIN_MS);
  }

  private boolean isSetBack() {
    return System.currentTimeMillis() < purgedAtMs - EXPIRY_MARGIN_MS;
  }

  /** Sends a form, or else a GET. */
  private Page fetch(String url, String form, int timeoutSeconds) throws IOException, InterruptedException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).header("Cache-Control", "no-cache");
    if (form != null) {
      request.header("Content-Type", "application/x-www-form-urlencoded");
      request.POST(HttpRequest.BodyPublishers.ofString(form));
    }
    HttpResponse<String> response = client.send(
        request.timeout(Duration.ofSeconds(timeoutSeconds)).build(), HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() != 200) throw new StatusException(response.statusCode());
    return new Page(Json.object(Json.parse(response.body())), response.headers().firstValueAsLong("Age").orElse(0));
  }

  private interface Work {
    /** Returns the milliseconds until the next call. */
    long run() throws Exception;
  }

  private static void startThread(Work work) {
    Thread thread = new Thread(() -> {
      long failureMs = 250;
      while (true) {
        try {
          long pauseMs;
          try {
            pauseMs = work.run();
            failureMs = 250;
          } catch (Exception error) { // of any kind: if this thread ended, every token would get 503
            System.err.println("the service did not respond as expected: " + error);
            failureMs = Math.min(failureMs * 2, MAX_PAUSE_MS);
            pauseMs = failureMs;
          }
          Thread.sleep(pauseMs);
        } catch (InterruptedException ended) {
          return;
        }
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private static PublicKey publicKey(String x, String y) throws GeneralSecurityException {
    AlgorithmParameters curve = AlgorithmParameters.getInstance("EC");
    curve.init(new ECGenParameterSpec("secp256r1"));
    ECPoint point = new ECPoint(integer(x), integer(y));
    return KeyFactory.getInstance("EC")
        .generatePublic(new ECPublicKeySpec(point, curve.getParameterSpec(ECParameterSpec.class)));
  }

  private static BigInteger integer(String base64url) {
    return new BigInteger(1, Base64.getUrlDecoder().decode(base64url));
  }

  private static Map<String, Object> decode(String part) {
    return Json.object(Json.parse(new String(Base64.getUrlDecoder().decode(part), StandardCharsets.UTF_8)));
  }

  private static String text(Map<String, Object> object, String name) {
    return Objects.requireNonNull((String) object.get(name), name);
  }

  private static long number(Map<String, Object> object, String name) {
    return ((Number) object.get(name)).longValue();
  }

  /** 0 if the claim is absent. */
  private static long count(Map<String, Object> object, String name) {
    return object.containsKey(name) ? number(object, name) : 0;
  }

  private static long timeMs(Map<String, Object> object, String name) {
    return OffsetDateTime.parse(text(object, name)).toInstant().toEpochMilli();
  }
}
