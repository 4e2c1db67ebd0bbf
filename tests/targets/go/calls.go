// SPDX-License-Identifier: GPL-3.0-or-later
// Goroutines that have C code allocate: as often as the argument says, each of four.
package main

/*
#include <stdlib.h>
static void *allocate(int size) { return malloc(size); }
static void release(void *block) { free(block); }
*/
import "C"

import (
	"os"
	"strconv"
	"sync"
)

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			for j := 0; j < times; j++ {
				C.release(C.allocate(100))
			}
			all.Done()
		}()
	}
	all.Wait()
}
