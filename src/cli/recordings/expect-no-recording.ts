import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { SEALED } from '../../compare/recording/sealed-file.ts'
import { AdapterError } from '../../errors.ts'
import { isLoopback } from '../../http/address.ts'

/**
 * Sees to it that a file that is sent is not of a recording: its marks were written when it was recorded. Pseudonyms may go to a stand-in on a
 * loopback address. Error: `ADP_USAGE`.
 */
export async function expectNoRecording(path: string, to: URL): Promise<void> {
  const note = join(dirname(path), 'recording.json')
  const text = path === '-' ? undefined : await readFile(note, 'utf8').catch(() => undefined)
  const isSealed = path.endsWith(SEALED)
  if (text === undefined && !isSealed) return
  if (text?.includes('"pseudonyms": true') === true && isLoopback(to.hostname)) return
  throw new AdapterError(
    'ADP_USAGE',
    `${path} is a recording of a request that was served: sent, its marks would be written once more. Only pseudonyms can be sent, to a loopback address.`,
  )
}
