// `adapter-process.ts` loads this module into the adapter. At each SIGUSR2 the module prints the longest turn of the event loop since the
// last signal, in milliseconds of processor time, which does not depend on other programs on the machine.
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
let longestMs = 0
let before = cpuMs()
setInterval(() => {
  const now = cpuMs()
  longestMs = Math.max(longestMs, now - before)
  before = now
}, 1).unref()
process.on('SIGUSR2', () => {
  console.log(`longest turn ${longestMs.toFixed(1)}`)
  longestMs = 0
})
