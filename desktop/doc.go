// Package desktop gives a sandbox its screen: an X server with an Xfce desktop that is seen and typed on over RFB. It needs nothing of a
// sandbox but [contract.Environment], an image with the programs and dockerbox's agent in it; it knows no Docker.
//
// A sandbox has at most one screen. Its files are laid out as Hermes's own Bot Desktop lays out its, so that either takes the other's
// screen for what it is. What comes back from inside is checked and bounded: a sandbox may say anything.
package desktop
