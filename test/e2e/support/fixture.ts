import { readdir, readFile } from 'node:fs/promises'

import * as z from 'zod'

import { type RawMessage, readMessage } from './raw-message.ts'

const root = new URL('../../../fixtures/', import.meta.url)

const caseSchema = z.strictObject({
  /** The rules of docs/protocol.md that the exchange demonstrates, such as `F12`. */
  rows: z.array(z.string()).min(1),
  title: z.string().min(1),
  partner: z.record(z.string(), z.unknown()).default({}),
  limits: z.record(z.string(), z.int()).default({}),
  /** The expected rejection of the whole request, after which nothing is posted. `target` is the target of the first detail. */
  reject: z.strictObject({ status: z.int(), code: z.string(), target: z.string().optional() }).optional(),
})

/** The answer of the scripted service to a post. `after` delays the answer until the client has received this text. */
const answerSchema = z
  .strictObject({
    status: z.int().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    body: z.unknown().optional(),
    after: z.string().optional(),
  })
  .nullable()

export type Answer = z.infer<typeof answerSchema>

/** One folder of `fixtures/`: an exchange between a V2 client, the adapter and V3. */
export interface Fixture extends z.infer<typeof caseSchema> {
  readonly name: string
  readonly folder: URL
  readonly bytes: Buffer
  readonly request: RawMessage
  /**
   * The bodies that V3 must get, with placeholders. Their order matters only among records of one learner and event. A read is written as
   * `{ "GET": target }`.
   */
  readonly posts: readonly unknown[]
  /** Answers by position in `posts`. A null or missing answer is 201 with an echo. */
  readonly answers: readonly Answer[]
  /** The expected reply with placeholders, or `undefined` for most rejected requests. */
  readonly response: RawMessage | undefined
}

const isBatch = ({ request }: Fixture): boolean => /^POST \S*\/(?:\$|%24)batch /i.test(request.startLine)

/** Loads the fixtures in the order of their names: `batches` are sent to `$batch`, and `others` are not. */
export async function loadFixtures(which: 'batches' | 'others' = 'batches'): Promise<Fixture[]> {
  const entries = await readdir(root, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const all = await Promise.all(names.sort().map((name) => loadFixture(new URL(`${name}/`, root), name)))
  return all.filter((fixture) => isBatch(fixture) === (which === 'batches'))
}

async function loadFixture(folder: URL, name: string): Promise<Fixture> {
  const files = new Set(await readdir(folder))
  const read = (file: string): Promise<Buffer> => readFile(new URL(file, folder))
  const readJson = async (file: string): Promise<unknown> =>
    files.has(file) ? (JSON.parse((await read(file)).toString()) as unknown) : []
  const bytes = await read('request.http')
  const request = readMessage(bytes)
  if (request === undefined)
    throw new Error(
      `${name}/request.http is not one whole HTTP request. Does its Content-Length fit its body?`,
    )
  return {
    ...caseSchema.parse(JSON.parse((await read('case.json')).toString())),
    ...{ name, folder },
    bytes,
    request,
    posts: z.array(z.unknown()).parse(await readJson('v3-request.json')),
    answers: z.array(answerSchema).parse(await readJson('v3-response.json')),
    response: files.has('response.http') ? readTemplate(await read('response.http')) : undefined,
  }
}

/** Reads a response file. Everything after the blank line is the body, because the file has no framing headers. */
function readTemplate(bytes: Buffer): RawMessage | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  const head = readMessage(bytes.subarray(0, headEnd + 4))
  return head === undefined ? undefined : { ...head, body: bytes.subarray(headEnd + 4) }
}
