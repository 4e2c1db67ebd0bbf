// SPDX-License-Identifier: GPL-3.0-or-later

// A Go program without C code. Sleeps until it is ended where it is given an argument.
package main

import (
	"os"
	"time"
)

func main() {
	blocks := [][]byte{}
	for i := 0; i < 1000; i++ {
		blocks = append(blocks, make([]byte, 100))
	}
	println(len(blocks))
	if len(os.Args) > 1 {
		time.Sleep(time.Hour)
	}
}
