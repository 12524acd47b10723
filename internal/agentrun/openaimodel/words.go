package openaimodel

import "fmt"

// What people read in the thread when there is no answer.
const (
	wordsTooLong     = "This conversation has become too long for the model. Start a new thread, and put what matters in its first message."
	wordsFiltered    = "The model provider's content filter stopped the answer. Rephrase the request and try again."
	wordsRateLimited = "The model provider is limiting requests. Try again in a few minutes."
	wordsKey         = "The model provider rejected the API key. Ask your Countersign admin to check the key and its permissions."
	wordsNotFound    = "The model provider doesn't have this model, or its address is wrong. Ask your Countersign admin to check the model name and the base URL."
	wordsQuota       = "The account with the model provider is out of credit. Ask your Countersign admin to check its plan and billing."
	wordsRequest     = "The model provider refused the request. Ask your Countersign admin to check the model settings and the log."
	wordsTimeout     = "The model didn't finish its answer in time. Try again, perhaps with a smaller task."
	wordsTooLarge    = "The model provider sent far more than an answer can be, so its answer wasn't used. Ask your Countersign admin to check the base URL and the log."
)

func wordsUnavailable(attempts int) string {
	if attempts == 1 {
		return "The model gave no usable answer. Try again later."
	}
	return fmt.Sprintf("The model gave no usable answer in %d attempts. Try again later.", attempts)
}
