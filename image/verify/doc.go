// Package verify holds an image to what a sandbox with a desktop needs: what the image says of itself, and what it does in a sandbox that
// is made for this and removed afterwards. It finds all faults at once, also in an image that has next to nothing.
package verify
