import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const FIXTURE = fileURLToPath(new URL('../../../fixtures/class-register/body.txt', import.meta.url))
const PATH = '/sp-api-write-back-partner-live/V2/Attendance/$batch'
const CREDENTIALS = "-H 'Ocp-Apim-Subscription-Key: sandbox' -H 'Authorization: bearer sandbox'"

/** The header by which the requests of the demo name their school. */
export const SCHOOL_HEADER = 'X-School'

/** Schools of the line for a share: enough for a fifth of them to be some. */
export const SCHOOLS = 20

/** One line that works in any folder: the fixture's path is absolute, its boundary is read from it. */
export async function curlLine(adapter: string): Promise<string> {
  return [
    `curl -sS '${adapter}${PATH}' ${CREDENTIALS}`,
    `-H 'Content-Type: multipart/mixed; boundary=${await readBoundary()}'`,
    `--data-binary '@${FIXTURE}'`,
  ].join(' ')
}

/** One line that posts the register for many schools. Each batch has an id of its own: with the same one it would be a resend. */
export async function schoolsLine(adapter: string): Promise<string> {
  const boundary = await readBoundary()
  const [, prefix = '', id = '', rest = ''] = /^(.*?)([0-9a-f]{8}-[0-9a-f]{4})(.*)$/.exec(boundary) ?? []
  return [
    `for school in $(seq 3001 ${3000 + SCHOOLS}); do id=$(date +%d%H%M%S)-$school;`,
    `sed "s/${id}/$id/" '${FIXTURE}' |`,
    `curl -sS -o /dev/null -w "school $school: %{http_code}\\n" '${adapter}${PATH}' ${CREDENTIALS}`,
    `-H "${SCHOOL_HEADER}: $school" -H "Content-Type: multipart/mixed; boundary=${prefix}$id${rest}"`,
    '--data-binary @-; done',
  ].join(' ')
}

/** A line that runs a command of `rollout` with this very program, from any folder. */
export function rolloutLine(command: string, config: string): string {
  const [node = '', program = ''] = process.argv
  return `'${node}' '${program}' rollout ${command} --config '${config}'`
}

async function readBoundary(): Promise<string> {
  return /^--(\S+)/.exec(await readFile(FIXTURE, 'utf8'))?.[1] ?? ''
}
