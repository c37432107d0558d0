// An API that accepts customer tokens: `go run ./chat-api`.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"example.com/tokenverifier"
)

// authenticate uses the file with the token of the platform if there is one, and otherwise the secret.
func authenticate() func(*http.Request) error {
	id, path := os.Getenv("RESOURCE_SERVER_ID"), os.Getenv("ASSERTION_FILE")
	if path == "" {
		return tokenverifier.Secret(id, os.Getenv("RESOURCE_SERVER_SECRET"))
	}
	return tokenverifier.Assertion(id, func() (string, error) {
		token, err := os.ReadFile(path)
		return strings.TrimSpace(string(token)), err
	})
}

func main() {
	verifier := &tokenverifier.Verifier{
		Issuer:       os.Getenv("AUTH_URL"),
		KeysURL:      cmp.Or(os.Getenv("JWKS_URL"), os.Getenv("AUTH_URL")+"/.well-known/jwks.json"),
		FeedURL:      os.Getenv("REVOCATIONS_URL"),
		Audience:     "customer-api",
		MaxAge:       time.Minute,
		Authenticate: authenticate(),
	}
	go verifier.Run(context.Background(), func(err error) { log.Print(err) })
	http.HandleFunc("GET /organizations/{organization}/chats", func(response http.ResponseWriter, request *http.Request) {
		scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			response.Header().Set("WWW-Authenticate", "Bearer") // no error code if there is no token
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		claims, err := verifier.Verify(token)
		var notChecked *tokenverifier.NotChecked
		switch {
		case errors.As(err, &notChecked):
			log.Print("token not checked: ", err)
			response.Header().Set("Retry-After", strconv.Itoa(notChecked.RetryAfter))
			response.WriteHeader(http.StatusServiceUnavailable)
		case err != nil:
			log.Print(err) // not in the response: it may help an attacker
			response.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			response.WriteHeader(http.StatusUnauthorized)
		case claims.OrganizationID != request.PathValue("organization"):
			response.WriteHeader(http.StatusNotFound)
		default:
			speaker := "customer " + claims.Sub
			if claims.Act != nil {
				speaker = "agent " + claims.Act.Sub + " for " + speaker
			}
			log.Printf("audit: %s read chats (%s)", speaker, claims.Gty)
			response.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(response).Encode(map[string]any{"customer": claims.Sub, "isUser": claims.UserVerified})
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on port %d", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}
