// Package tokenverifier verifies customer tokens without a request per token, and follows the revocation feed.
package tokenverifier

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	refreshKeysAfter = 5 * time.Minute
	maxKeysAge       = time.Hour
	keysPause        = 30 * time.Second // how long after a fetch an unknown key causes no other fetch
	maxUnknownKeys   = 100              // callers can invent any number of ids
	clockSkew        = 30 * time.Second // how far the clock of the service may be ahead; nothing for `exp`
	maxTokenBytes    = 8192
	maxEntries       = 5_000_000
	expiryMargin     = time.Minute // how long entries stay after their end, because the clock may be set back
	requestTimeout   = 5 * time.Second
	maxWait          = 25 * time.Second
	maxResponseBytes = 16 << 20
)

// A region, which standard libraries do not accept, and a JWS.
var tokenForm = regexp.MustCompile(`^(?:[A-Za-z0-9-]{1,16}:)?([\w-]+)\.([\w-]+)\.([\w-]{86})$`)

// Strict, so that no token has two texts.
var base64url = base64.RawURLEncoding.Strict()

// It keeps a connection to each server, and follows no redirect.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ErrInvalid is wrapped by each error after which you respond with 401. Every other error is a NotChecked.
var ErrInvalid = errors.New("invalid token")

// NotChecked says that the keys or the revocations are not known. Respond with 503, and RetryAfter (in seconds) as
// Retry-After. A 401 would make callers drop valid tokens.
type NotChecked struct {
	Reason     string
	RetryAfter int
}

func (e *NotChecked) Error() string { return e.Reason }

// Claims of a valid token. If Act is set, this agent speaks, and not the customer. Times are in seconds since 1970.
type Claims struct {
	Iss, Aud, Sub, Jti, Sid, Gty, ClientID, OrganizationID, GroupID string
	Iat, Nbf, Exp                                                   float64
	Ep, Gen                                                         int64
	UserVerified                                                    bool // a user of the organization, and no visitor
	Act                                                             *Actor
}

// Actor is the agent that obtained a token, and the session of the agent's token.
type Actor struct {
	Sub, Sid, ClientID string
	Ep                 int64
}

// Secret authenticates a resource server by its id and secret (RFC 6749 §2.3.1).
func Secret(id, secret string) func(*http.Request) error {
	return func(request *http.Request) error {
		request.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
		return nil
	}
}

// Assertion authenticates a resource server by an assertion, such as the token of its platform (RFC 7523 §2.2). It calls
// `read` for each request, because a platform replaces its tokens. The parameters move from the URL into a form, which no
// log contains.
func Assertion(id string, read func() (string, error)) func(*http.Request) error {
	return func(request *http.Request) error {
		assertion, err := read()
		if err != nil {
			return err
		}
		form := request.URL.Query()
		form.Set("client_id", id)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
		body := form.Encode()
		request.Method, request.URL.RawQuery = http.MethodPost, ""
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return nil
	}
}

// Verifier of the tokens of one issuer, while Run runs.
type Verifier struct {
	Issuer, KeysURL, FeedURL, Audience string
	MaxAge                             time.Duration             // of the list of revocations: a minute. Less notices an end no sooner, and rejects more in an outage
	Authenticate                       func(*http.Request) error // the only place that proves to the feed who the API is

	mutex                               sync.RWMutex
	keys                                map[string]*ecdsa.PublicKey
	keysSentAt, keysFreshAt             time.Time            // when the keys were requested, and this less the age of a cache
	unknownKeys                         map[string]time.Time // when a token named an unknown key first
	ended                               map[[2]string]revocation
	cursor                              string
	isCaughtUp                          bool
	syncedAt, purgedAt, incompleteUntil time.Time
}

type revocation struct {
	limit     int64 // ends the tokens with a lower epoch, generation or issue time
	expiresAt time.Time
}

// Run fetches the keys and follows the feed until the context ends. `report` gets each failure, for the log.
func (v *Verifier) Run(ctx context.Context, report func(error)) {
	go repeat(ctx, report, v.fetchKeys)
	repeat(ctx, report, v.readFeed)
}

// Verify returns the claims of a valid token.
func (v *Verifier) Verify(token string) (*Claims, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if len(token) > maxTokenBytes || parts == nil {
		return nil, invalid("malformed")
	}
	var typ, alg, kid string
	header := decode(parts[1])
	if !header.read("typ", &typ) || !header.read("alg", &alg) || !header.read("kid", &kid) ||
		typ != "at+jwt" || alg != "ES256" || header["crit"] != nil {
		return nil, invalid("not an access token")
	}
	key, err := v.key(kid)
	if err != nil {
		return nil, err
	}
	signature, err := base64url.DecodeString(parts[3])
	hash := sha256.Sum256([]byte(parts[1] + "." + parts[2]))
	if err != nil || !ecdsa.Verify(key, hash[:], integer(signature[:32]), integer(signature[32:])) {
		return nil, invalid("signature")
	}
	claims, isComplete := claimsOf(decode(parts[2]))
	now := float64(time.Now().UnixMilli()) / 1000
	switch {
	case !isComplete:
		return nil, invalid("a claim is missing or has another type")
	case claims.Iss != v.Issuer || claims.Aud != v.Audience:
		return nil, invalid("other issuer or audience")
	case now >= claims.Exp || max(claims.Iat, claims.Nbf) > now+clockSkew.Seconds():
		return nil, invalid("expired or not yet valid")
	case v.hasEnded(claims):
		return nil, invalid("ended")
	case !v.IsCurrent():
		return nil, &NotChecked{"the revocations are too old, or were not read yet", 5}
	}
	return claims, nil
}

// key returns a known key. An unknown one causes a fetch, at most every 30 s.
func (v *Verifier) key(kid string) (*ecdsa.PublicKey, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if age(v.keysFreshAt) > maxKeysAge {
		return nil, &NotChecked{"the keys were not fetched", 5}
	}
	if key := v.keys[kid]; key != nil {
		return key, nil
	}
	firstSeen, isNoted := v.unknownKeys[kid]
	if isNoted && firstSeen.Before(v.keysFreshAt) {
		return nil, invalid("unknown key")
	}
	if len(v.unknownKeys) >= maxUnknownKeys {
		clear(v.unknownKeys)
	}
	if !isNoted {
		v.unknownKeys[kid] = time.Now()
	}
	// the service may have published the key since the last fetch
	return nil, &NotChecked{"unknown key", int(max(0, keysPause-age(v.keysSentAt)).Seconds()) + 1}
}

// fetchKeys returns the pause before its next call.
func (v *Verifier) fetchKeys(ctx context.Context) (time.Duration, error) {
	v.mutex.RLock()
	var isWanted bool // by a token that came after the last fetch
	for _, firstSeen := range v.unknownKeys {
		isWanted = isWanted || firstSeen.After(v.keysSentAt)
	}
	keysAge := age(v.keysSentAt)
	v.mutex.RUnlock()
	if keysAge < keysPause || (keysAge < refreshKeysAfter && !isWanted) {
		return time.Second, nil
	}
	var set struct {
		Keys []struct{ Kid, Kty, Crv, X, Y string }
	}
	sentAt := time.Now()
	cacheAge, err := getJSON(ctx, v.KeysURL, nil, requestTimeout, &set)
	keys := map[string]*ecdsa.PublicKey{}
	for _, jwk := range set.Keys {
		x, _ := base64url.DecodeString(jwk.X)
		y, _ := base64url.DecodeString(jwk.Y)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		if err == nil && jwk.Kty == "EC" && jwk.Crv == "P-256" {
			keys[jwk.Kid] = key
		}
	}
	if err == nil && len(keys) == 0 {
		err = errors.New("the response has no usable key")
	}
	if err != nil {
		return 0, fmt.Errorf("no keys: %w", err)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.keys, v.keysSentAt, v.keysFreshAt = keys, sentAt, sentAt.Add(-cacheAge)
	if v.unknownKeys == nil {
		v.unknownKeys = map[string]time.Time{}
	}
	return time.Second, nil
}
