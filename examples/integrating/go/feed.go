package tokenverifier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"
)

// IsCurrent says whether the list of revocations is complete, and not older than MaxAge.
func (v *Verifier) IsCurrent() bool {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	return age(v.syncedAt) <= v.MaxAge && !wallClock().Before(v.incompleteUntil) && !v.isSetBack()
}

func (v *Verifier) hasEnded(c *Claims) bool {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	ends := func(kind, value string, number int64) bool { return number < v.ended[[2]string{kind, value}].limit }
	return ends("token", c.Jti, 0) || ends("session", c.Sid, c.Ep) || ends("subject", c.Sub, c.Gen) ||
		ends("client", c.ClientID, int64(c.Iat)) || ends("organization", c.OrganizationID, int64(c.Iat)) ||
		(c.Act != nil && ends("session", c.Act.Sid, c.Act.Ep))
}

// readFeed returns the pause before the next request.
func (v *Verifier) readFeed(ctx context.Context) (time.Duration, error) {
	v.mutex.Lock()
	if v.isSetBack() { // deleted entries hold again
		v.cursor, v.isCaughtUp, v.syncedAt, v.purgedAt = "", false, time.Time{}, time.Time{}
	}
	wait := time.Duration(0)
	if v.isCaughtUp { // a third, because the age of the list counts from the request
		wait = min(maxWait, (v.MaxAge / 3).Truncate(time.Second))
	}
	query := url.Values{"wait": {strconv.Itoa(int(wait.Seconds()))}}
	if v.cursor != "" {
		query.Set("after", v.cursor)
	}
	v.isCaughtUp = false // if this request fails, the next one does not wait, so that its response ends the outage
	v.mutex.Unlock()
	var page struct {
		Revocations []fields
		Cursor      string
		Complete    bool
	}
	sentAt := time.Now()
	cacheAge, err := getJSON(ctx, v.FeedURL+"?"+query.Encode(), v.Authenticate, wait+requestTimeout, &page)
	v.mutex.Lock()
	defer v.mutex.Unlock()
	var status *statusError
	if errors.As(err, &status) && (status.code == 400 || status.code == 410) {
		v.cursor = "" // the service does not know the cursor: read everything again
	}
	if err == nil && page.Cursor == "" {
		err = errors.New("the response has no cursor")
	}
	if err != nil {
		return 0, fmt.Errorf("no revocations: %w", err)
	}
	v.purge()
	for _, entry := range page.Revocations {
		if !v.add(entry) {
			return 0, errors.New("no revocations: an entry has no kind, value or end")
		}
	}
	hasAdvanced := page.Cursor != v.cursor
	v.cursor, v.isCaughtUp = page.Cursor, page.Complete
	if !page.Complete && hasAdvanced {
		return 0, nil
	}
	if page.Complete {
		v.syncedAt = sentAt.Add(-cacheAge)
	}
	if page.Complete && (hasAdvanced || time.Since(sentAt) > wait/2) {
		return 200 * time.Millisecond, nil
	}
	return time.Second, nil
}

// add returns false if the entry cannot be read.
func (v *Verifier) add(entry fields) bool {
	var kind, value string
	var expiresAt, issuedBefore time.Time
	if !entry.read("kind", &kind) || !entry.read("value", &value) || !entry.read("expires_at", &expiresAt) {
		return false
	}
	limit, isKnown := int64(0), false
	switch kind {
	case "session":
		isKnown = entry.read("epoch", &limit)
	case "subject":
		isKnown = entry.read("generation", &limit)
	case "client", "organization", "token": // the tokens of this second, too
		isKnown = entry.read("issued_before", &issuedBefore)
		limit = issuedBefore.Unix() + 1
	}
	key := [2]string{kind, value}
	known, isListed := v.ended[key]
	if !isKnown || len(entry) != 4 || (len(v.ended) >= maxEntries && !isListed) { // what it ends is not known, or not stored
		v.incompleteUntil = later(v.incompleteUntil, expiresAt)
	} else {
		v.ended[key] = revocation{max(known.limit, limit), later(known.expiresAt, expiresAt)}
	}
	return true
}

func (v *Verifier) purge() {
	now := wallClock()
	if v.ended == nil {
		v.ended = map[[2]string]revocation{}
	}
	if now.Sub(v.purgedAt) >= time.Minute {
		v.purgedAt = now
		maps.DeleteFunc(v.ended, func(_ [2]string, r revocation) bool { return r.expiresAt.Before(now.Add(-expiryMargin)) })
	}
}

// isSetBack says whether the clock was set back, so that deleted entries hold again.
func (v *Verifier) isSetBack() bool { return wallClock().Before(v.purgedAt.Add(-expiryMargin)) }
