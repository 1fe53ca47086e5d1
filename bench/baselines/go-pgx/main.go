// Go's net/http and pgx with its pool, one INSERT per request. pgx prepares the statement by itself.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v4/pgxpool"
)

var db *pgxpool.Pool

// Pointers distinguish a missing member from a zero value.
type newPlant struct {
	ID   *int64  `json:"id"`
	Name *string `json:"name"`
	Tag  *string `json:"tag"`
}

type plant struct {
	Name string  `json:"name"`
	Tag  *string `json:"tag,omitempty"`
}

type failure struct {
	Error   int    `json:"error"`
	Message string `json:"message"`
}

func answer(w http.ResponseWriter, status int, body interface{}) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func createPlant(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") != "Bearer "+os.Getenv("ACCESS_TOKEN") {
		answer(w, http.StatusUnauthorized, failure{401, "A token is needed."})
		return
	}
	if req.Method != http.MethodPost {
		answer(w, http.StatusMethodNotAllowed, failure{405, "The method is POST."})
		return
	}
	var sent newPlant
	if err := json.NewDecoder(req.Body).Decode(&sent); err != nil || sent.ID == nil || sent.Name == nil {
		answer(w, http.StatusBadRequest, failure{422, "Not a plant."})
		return
	}
	_, err := db.Exec(req.Context(), "INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)", sent.ID, sent.Name, sent.Tag)
	if err != nil {
		answer(w, http.StatusInternalServerError, failure{500, "Failed."})
		return
	}
	answer(w, http.StatusOK, plant{*sent.Name, sent.Tag})
}

func main() {
	var err error
	db, err = pgxpool.Connect(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal("Unable to create connection pool: ", err)
	}
	http.HandleFunc("/plants", createPlant)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
