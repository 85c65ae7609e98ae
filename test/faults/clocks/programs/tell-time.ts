// Prints the time by all clocks, again and again: the wall clock twice, and the one that only runs forward.

setInterval(() => {
  console.log(JSON.stringify([Date.now(), new Date().getTime(), performance.now(), new Date(0).getTime()]))
}, 5)
