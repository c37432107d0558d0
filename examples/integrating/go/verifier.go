// Package tokenverifier verifies customer tokens without a request per token, and follows the revocation feed.
package tokenverifier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	keysInterval     = 30 * time.Second
	maxKeysAge       = time.Hour
	maxUnknownKeys   = 100              // callers can invent any number of ids
	clockSkew        = 30 * time.Second // how far the clock of the service may be ahead; nothing for `exp`
	maxTokenBytes    = 8192
	maxListAge       = time.Minute // in an outage of the service, a token that has ended is accepted for so long
	longWaitSeconds  = "20"        // a third, because the age of the list counts from the request
	minPause         = time.Second / 2
	failurePause     = 5 * time.Second
	maxEntries       = 5_000_000
	expiryMargin     = time.Hour // how long entries stay after their end, because the clock may be set back
	maxResponseBytes = 16 << 20
	assertionType    = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// A region, which standard libraries do not accept, and a JWS whose signature has no unused bits.
var tokenForm = regexp.MustCompile(`^(?:[A-Za-z0-9-]{1,16}:)?([\w-]+\.[\w-]+\.[\w-]{85}[AQgw])$`)
var kinds = []string{"token", "session", "subject", "client", "organization"}

// It keeps a connection to each server, and follows no redirect.
var client = &http.Client{
	Timeout:       25 * time.Second, // more than the long wait
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Error says why a token is not accepted. Respond with its status: 401 for an invalid token, and 503 with a Retry-After if
// the keys or the revocations are not known. A 401 would then make callers drop valid tokens.
type Error struct {
	Status     int
	Reason     string
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Reason }

// Claims of a valid token. If Act is set, this agent speaks, and not the customer.
type Claims struct {
	jwt.Claims
	ClientID       string `json:"client_id"`
	OrganizationID string `json:"organization_id"`
	GroupID        string `json:"group_id"`
	Grant          string `json:"gty"`
	SessionID      string `json:"sid"`
	Epoch          int64  `json:"ep"`
	Generation     int64  `json:"gen"`
	UserVerified   any    `json:"user_verified"`
	Act            *Actor `json:"act"`
}

// Actor is the agent that obtained a token, and the session of the agent's token.
type Actor struct {
	Subject   string `json:"sub"`
	SessionID string `json:"sid"`
	Epoch     int64  `json:"ep"`
	ClientID  string `json:"client_id"`
}

// IsUser says whether the customer is a user of the organization, and no visitor.
func (c *Claims) IsUser() bool { return c.UserVerified == true }

// Verifier of the tokens of one issuer.
type Verifier struct {
	Issuer, KeysURL, FeedURL, Audience string
	ID, Secret                         string // of your API at the feed
	AssertionFile                      string // the token of your platform, in place of the secret (RFC 7523 §2.2)

	mutex            sync.RWMutex
	keys             jose.JSONWebKeySet
	keysAt, syncedAt time.Time            // when the keys were current, and when the list of revocations was complete
	purgedAt         time.Time            // when expired entries were deleted
	unknownKeys      map[string]time.Time // when a token named an unknown key first
	ended            map[tokens]revocation
	cursor           string
	isCaughtUp       bool
}

type tokens struct{ kind, value string }

// It ends the tokens with a lower epoch, generation or issue time.
type revocation struct{ limit, expiresAt int64 }

// Start fetches the keys and follows the feed in the background. Call it once, before Verify.
func (v *Verifier) Start() {
	v.unknownKeys, v.ended = map[string]time.Time{}, map[tokens]revocation{}
	go repeat(v.fetchKeys)
	go repeat(v.readFeed)
}

// Verify returns the claims of a valid token. Each error is an *Error.
func (v *Verifier) Verify(token string) (*Claims, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if len(token) > maxTokenBytes || parts == nil {
		return nil, &Error{401, "malformed", 0}
	}
	jws, err := jwt.ParseSigned(parts[1], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || jws.Headers[0].ExtraHeaders[jose.HeaderType] != "at+jwt" {
		return nil, &Error{401, "not an access token", 0}
	}
	key, err := v.key(jws.Headers[0].KeyID)
	if err != nil {
		return nil, err
	}
	claims := &Claims{}
	if err := jws.Claims(key, claims); err != nil {
		return nil, &Error{401, err.Error(), 0}
	}
	if claims.Issuer != v.Issuer || !claims.Audience.Contains(v.Audience) {
		return nil, &Error{401, "other issuer or audience", 0}
	}
	if !time.Now().Before(claims.Expiry.Time()) || claims.ValidateWithLeeway(jwt.Expected{}, clockSkew) != nil {
		return nil, &Error{401, "expired or not yet valid", 0}
	}
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	if v.hasEnded(claims) {
		return nil, &Error{401, "ended", 0}
	}
	if age(v.syncedAt) > maxListAge || v.isSetBack() {
		return nil, &Error{503, "the revocations are too old, or were not read yet", failurePause}
	}
	return claims, nil
}

func (v *Verifier) key(id string) (any, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if age(v.keysAt) > maxKeysAge {
		return nil, &Error{503, "the keys were not fetched", failurePause}
	}
	if keys := v.keys.Key(id); len(keys) > 0 {
		return keys[0].Key, nil
	}
	firstSeen, isNoted := v.unknownKeys[id]
	if isNoted && firstSeen.Before(v.keysAt) {
		return nil, &Error{401, "unknown key", 0}
	}
	if len(v.unknownKeys) >= maxUnknownKeys {
		clear(v.unknownKeys)
	}
	if !isNoted {
		v.unknownKeys[id] = time.Now()
	}
	// the service may have published the key since the last fetch
	return nil, &Error{503, "unknown key", keysInterval}
}

func (v *Verifier) fetchKeys() (time.Duration, error) {
	var keys jose.JSONWebKeySet
	currentAt, _, err := fetch(http.MethodGet, v.KeysURL, nil, &keys)
	if err != nil || len(keys.Keys) == 0 {
		return 0, fmt.Errorf("no keys: %v", err)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.keys, v.keysAt = keys, currentAt
	return keysInterval, nil
}

func (v *Verifier) hasEnded(c *Claims) bool {
	issuedAt := c.IssuedAt.Time().Unix()
	ends := func(kind, value string, number int64) bool { return number < v.ended[tokens{kind, value}].limit }
	return ends("token", c.ID, 0) || ends("session", c.SessionID, c.Epoch) || ends("subject", c.Subject, c.Generation) ||
		ends("client", c.ClientID, issuedAt) || ends("organization", c.OrganizationID, issuedAt) ||
		(c.Act != nil && ends("session", c.Act.SessionID, c.Act.Epoch))
}

func (v *Verifier) readFeed() (time.Duration, error) {
	form, err := v.credentials()
	if err != nil {
		return 0, err
	}
	if v.cursor != "" {
		form.Set("after", v.cursor)
	}
	if v.isCaughtUp {
		form.Set("wait", longWaitSeconds)
	}
	v.isCaughtUp = false // if this request fails, the next one does not wait, so that its response ends the outage
	var page struct {
		Revocations []json.RawMessage
		Cursor      string
		Complete    bool
	}
	currentAt, status, err := fetch(http.MethodPost, v.FeedURL, form, &page)
	if err != nil {
		if status == http.StatusBadRequest || status == http.StatusGone {
			v.cursor = "" // the service does not know the cursor: read everything again
		}
		return 0, fmt.Errorf("no revocations: %w", err)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.isSetBack() { // entries that were deleted hold again: read everything again
		v.cursor, v.syncedAt, v.purgedAt = "", time.Time{}, time.Time{}
		return 0, nil
	}
	for _, entry := range page.Revocations {
		if err := v.add(entry); err != nil {
			v.syncedAt = time.Time{} // the list lacks this entry until a later response does not have it
			return 0, fmt.Errorf("no revocations: %w", err)
		}
	}
	pause := minPause
	if page.Complete {
		v.syncedAt, v.purgedAt = currentAt, wallClock()
		longAgo := v.purgedAt.Add(-expiryMargin).Unix()
		maps.DeleteFunc(v.ended, func(_ tokens, r revocation) bool { return r.expiresAt < longAgo })
	} else if page.Cursor != v.cursor {
		pause = 0
	}
	v.cursor, v.isCaughtUp = page.Cursor, page.Complete
	return pause, nil
}

// credentials are the only proof to the feed who the API is. The file is read each time, because the platform replaces it.
func (v *Verifier) credentials() (url.Values, error) {
	if v.AssertionFile == "" {
		return url.Values{"client_id": {v.ID}, "client_secret": {v.Secret}}, nil
	}
	text, err := os.ReadFile(v.AssertionFile)
	assertion := strings.TrimSpace(string(text))
	return url.Values{"client_id": {v.ID}, "client_assertion_type": {assertionType}, "client_assertion": {assertion}}, err
}

// add keeps the stricter of two entries about the same tokens.
func (v *Verifier) add(text []byte) error {
	entry := struct {
		Kind, Value       string
		Epoch, Generation int64
		IssuedBefore      time.Time `json:"issued_before"`
		ExpiresAt         time.Time `json:"expires_at"`
	}{Epoch: -1, Generation: -1}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entry); err != nil {
		return err
	}
	limit := max(entry.Epoch, entry.Generation, entry.IssuedBefore.Unix()+1) // the tokens of this second, too
	if !slices.Contains(kinds, entry.Kind) || limit < 0 || len(v.ended) >= maxEntries {
		return errors.New("an unknown kind of entry, or too many entries")
	}
	of := tokens{entry.Kind, entry.Value}
	v.ended[of] = revocation{max(v.ended[of].limit, limit), max(v.ended[of].expiresAt, entry.ExpiresAt.Unix()+1)}
	return nil
}

func (v *Verifier) isSetBack() bool { return wallClock().Before(v.purgedAt.Add(-expiryMargin)) }

func wallClock() time.Time { return time.Now().Round(0) }

// age is the longer time of both clocks: one stops while a machine is suspended, and the other may be set back.
func age(moment time.Time) time.Duration {
	return max(time.Since(moment), wallClock().Sub(moment.Round(0)))
}

// repeat calls work with the pauses that it returns.
func repeat(work func() (time.Duration, error)) {
	for {
		pause, err := work()
		if err != nil {
			log.Print(err)
			pause = failurePause
		}
		time.Sleep(pause)
	}
}

// fetch reads the JSON of a response. Returns when it was current, which a cache may delay, and the status.
func fetch(method, url string, form url.Values, to any) (time.Time, int, error) {
	sentAt := time.Now()
	request, err := http.NewRequest(method, url, strings.NewReader(form.Encode()))
	if err != nil {
		return sentAt, 0, err
	}
	request.Header.Set("Cache-Control", "no-cache")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return sentAt, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return sentAt, response.StatusCode, errors.New(response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxResponseBytes)).Decode(to)
	cacheSeconds, _ := strconv.ParseUint(response.Header.Get("Age"), 10, 24)
	return sentAt.Add(-time.Duration(cacheSeconds) * time.Second), response.StatusCode, err
}
