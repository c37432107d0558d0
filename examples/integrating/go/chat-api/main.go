// An API that accepts customer tokens: `go run ./chat-api`.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"example.com/tokenverifier"
)

func main() {
	verifier := &tokenverifier.Verifier{
		Issuer:        os.Getenv("AUTH_URL"),
		KeysURL:       cmp.Or(os.Getenv("JWKS_URL"), os.Getenv("AUTH_URL")+"/.well-known/jwks.json"),
		FeedURL:       os.Getenv("REVOCATIONS_URL"),
		Audience:      "customer-api",
		ID:            os.Getenv("RESOURCE_SERVER_ID"),
		Secret:        os.Getenv("RESOURCE_SERVER_SECRET"),
		AssertionFile: os.Getenv("ASSERTION_FILE"),
	}
	verifier.Start()
	http.HandleFunc("GET /organizations/{organization}/chats", func(response http.ResponseWriter, request *http.Request) {
		scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			response.Header().Set("WWW-Authenticate", "Bearer") // no error code if there is no token
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		claims, err := verifier.Verify(token)
		var rejected *tokenverifier.Error
		switch {
		case errors.As(err, &rejected):
			log.Print("token not accepted: ", err) // not in the response: it may help an attacker
			if rejected.Status == http.StatusUnauthorized {
				response.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			} else {
				response.Header().Set("Retry-After", strconv.Itoa(int(rejected.RetryAfter.Seconds())))
			}
			response.WriteHeader(rejected.Status)
		case claims.OrganizationID != request.PathValue("organization"):
			response.WriteHeader(http.StatusNotFound)
		default:
			speaker := "customer " + claims.Subject
			if claims.Act != nil {
				speaker = "agent " + claims.Act.Subject + " for " + speaker
			}
			log.Printf("audit: %s read chats (%s)", speaker, claims.Grant)
			response.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(response).Encode(map[string]any{"customer": claims.Subject, "isUser": claims.IsUser()})
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on port %d", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}
