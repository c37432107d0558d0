package tokenverifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"time"
)

type statusError struct {
	code       int
	retryAfter time.Duration
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.code) }

// repeat calls work with the pauses that it returns. After a failure, they double up to 30 s.
func repeat(ctx context.Context, report func(error), work func(context.Context) (time.Duration, error)) {
	for failures := 0; ctx.Err() == nil; {
		pause, err := work(ctx)
		if err == nil {
			failures = 0
		} else {
			report(err)
			failures = min(failures+1, 7)
			pause = min(250*time.Millisecond<<failures, 30*time.Second)
			if status := (*statusError)(nil); errors.As(err, &status) {
				pause = max(pause, min(status.retryAfter, time.Minute))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// getJSON returns for how long a cache had the response.
func getJSON(ctx context.Context, url string, authenticate func(*http.Request) error, timeout time.Duration, to any) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Cache-Control", "no-cache")
	if authenticate != nil {
		if err := authenticate(request); err != nil {
			return 0, err
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes)) // to the end, so that the connection stays
	if response.StatusCode != http.StatusOK {
		return 0, &statusError{response.StatusCode, secondsOf(response.Header.Get("Retry-After"))}
	}
	if err != nil {
		return 0, err
	}
	return secondsOf(response.Header.Get("Age")), json.Unmarshal(body, to)
}

func secondsOf(header string) time.Duration {
	seconds, _ := strconv.ParseUint(header, 10, 24) // 0 if there is no such number
	return time.Duration(seconds) * time.Second
}

// fields of a JSON object, by their exact names. The names of a struct match in any case.
type fields map[string]json.RawMessage

func decode(part string) (f fields) {
	text, err := base64url.DecodeString(part)
	if err != nil || json.Unmarshal(text, &f) != nil {
		return nil
	}
	return f
}

// read returns whether the field is there, and has the type.
func (f fields) read(name string, to any) bool {
	return f[name] != nil && string(f[name]) != "null" && json.Unmarshal(f[name], to) == nil
}

func (f fields) readOptional(name string, to any) bool { return f[name] == nil || f.read(name, to) }

func claimsOf(f fields) (*Claims, bool) {
	var act fields
	c := &Claims{}
	isComplete := f.read("iss", &c.Iss) && f.read("aud", &c.Aud) && f.read("sub", &c.Sub) && f.read("jti", &c.Jti) &&
		f.read("client_id", &c.ClientID) && f.read("organization_id", &c.OrganizationID) &&
		f.read("iat", &c.Iat) && f.read("exp", &c.Exp) && f.readOptional("nbf", &c.Nbf) &&
		f.readOptional("sid", &c.Sid) && f.readOptional("ep", &c.Ep) && f.readOptional("gen", &c.Gen) &&
		f.readOptional("gty", &c.Gty) && f.readOptional("group_id", &c.GroupID) && f.readOptional("act", &act)
	f.read("user_verified", &c.UserVerified) // every other value counts as absent
	if act != nil {
		c.Act = &Actor{}
		isComplete = isComplete && act.read("sub", &c.Act.Sub) && act.read("sid", &c.Act.Sid) &&
			act.readOptional("ep", &c.Act.Ep) && act.readOptional("client_id", &c.Act.ClientID)
	}
	return c, isComplete
}

func invalid(reason string) error { return fmt.Errorf("%w: %s", ErrInvalid, reason) }

func integer(bytes []byte) *big.Int { return new(big.Int).SetBytes(bytes) }

func wallClock() time.Time { return time.Now().Round(0) }

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}

// age is the longer time of both clocks: one stops while a machine is suspended, and the other may be set back.
func age(moment time.Time) time.Duration {
	return max(time.Since(moment), wallClock().Sub(moment.Round(0)))
}
