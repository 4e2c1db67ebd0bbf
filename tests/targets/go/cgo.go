// SPDX-License-Identifier: GPL-3.0-or-later

// Go code that calls C code, which allocates:
//
//	1000 blocks of 100 bytes in main.leak, called by main.main
//	7 blocks of 200 bytes in main.leak, called by a goroutine whose stack has grown and was moved by that
//	5 blocks of 300 bytes in C code that Go code calls, which C code calls, which main.there calls
//	3 blocks of 400 bytes in the same, where C code and Go code have called one another two times more
package main

/*
#include <stdlib.h>

extern void backAgain(int n, int size);

static __attribute__((noinline)) void *allocate(int size)
{
	void *volatile block = malloc(size);

	return block;
}

static __attribute__((noinline)) int callGo(int n, int size)
{
	backAgain(n, size);
	return n;
}
*/
import "C"

//go:noinline
func leak(size int) {
	C.allocate(C.int(size))
}

//export backAgain
func backAgain(n, size C.int) {
	if n > 0 {
		C.callGo(n-1, size)
	} else {
		C.allocate(size)
	}
}

//go:noinline
func there(n, size int) {
	C.callGo(C.int(n), C.int(size))
}

//go:noinline
func grow(n int) byte {
	var frame [4096]byte

	frame[n] = byte(n)
	if n > 0 {
		return grow(n-1) + frame[n]
	}
	for i := 0; i < 7; i++ {
		leak(200)
	}
	return frame[n]
}

func main() {
	done := make(chan byte)
	for i := 0; i < 1000; i++ {
		leak(100)
	}
	go func() { done <- grow(3) }()
	<-done
	for i := 0; i < 5; i++ {
		there(0, 300)
	}
	for i := 0; i < 3; i++ {
		there(2, 400)
	}
}
