import { InvalidArgumentError } from 'commander'

/** Reads a TCP port, 0 (any free one) to 65535. */
export function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('A port is a number from 0 to 65535.')
  return port
}

/** Reads a whole number of zero or more. */
export function readCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('A whole number is expected.')
  return Number(text)
}

/** Reads how many processes are to run, 1 to 64. */
export function readWorkers(text: string): number {
  const count = readCount(text)
  if (count < 1 || count > 64) throw new InvalidArgumentError('Workers are a number from 1 to 64.')
  return count
}

/** Reads a share, 0 to 100. */
export function readPercent(text: string): number {
  const percent = Number(text)
  if (!/^\d{1,3}(\.\d{1,3})?$/.test(text) || percent > 100)
    throw new InvalidArgumentError('A share is a number from 0 to 100.')
  return percent
}
