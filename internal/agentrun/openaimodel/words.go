package openaimodel

import "fmt"

// What people read in the thread when there is no answer.
const (
	wordsTooLong     = "This conversation has become too long for the model. Please start a new thread, with what matters in its first message."
	wordsFiltered    = "The model's provider stopped the answer with its content filter. Please put the request differently."
	wordsRateLimited = "The model's provider keeps turning us away because there are too many requests. Please try again in a few minutes."
	wordsKey         = "The model's provider does not let us in. The operator of this bot must look at the API key and what it may use."
	wordsNotFound    = "The model's provider does not know the model, or is not where we look for it. The operator of this bot must look at the model's name and the base URL."
	wordsQuota       = "The account with the model's provider has nothing left to spend. The operator of this bot must look at its plan and billing."
	wordsRequest     = "The model's provider refused the request as it was sent. The operator of this bot must look at the model's settings and at the log."
	wordsTimeout     = "The model did not finish its answer in time. Please try again, perhaps with a smaller task."
	wordsTooLarge    = "The model's provider sent far more than an answer can be, so it was broken off. The operator of this bot must look at the base URL and the log."
)

func wordsUnavailable(attempts int) string {
	if attempts == 1 {
		return "The model gave no usable answer. Please try again later."
	}
	return fmt.Sprintf("The model gave no usable answer, although it was asked %d times. Please try again later.", attempts)
}
