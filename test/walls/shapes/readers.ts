import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

import { inspectRecording } from '../../../src/cli/recordings/inspect-recording.ts'
import { Findings } from '../../../src/compare/diff/findings.ts'
import { marksOf, readBody } from '../../../src/compare/live/marks.ts'
import { compareBodies } from '../../../src/compare/live/reply-form.ts'
import { maskTarget, maskTokens } from '../../../src/compare/recording/mask-credentials.ts'
import { splitMessage } from '../../../src/compare/recording/split-message.ts'
import { readYaml } from '../../../src/config/yaml.ts'
import type * as Layout from '../../../src/console/pages/layout.tsx'
import type * as Parts from '../../../src/console/pages/parts.tsx'
import type * as Try from '../../../src/console/pages/try.tsx'
import type { ConsolePorts, TriedReply } from '../../../src/console/ports.ts'
import type { Visit } from '../../../src/console/access/visit.ts'
import { createAddressList } from '../../../src/http/address.ts'
import { readClientCredentials } from '../../../src/http/client-credentials.ts'
import { parseMediaType } from '../../../src/http/media-type.ts'
import { readTarget } from '../../../src/http/request-target.ts'
import { createSlicing, runInSlices, type Steps } from '../../../src/http/slices.ts'
import { parseExpand, parseFilter, parseKey, parseResourcePath } from '../../../src/odata/index.ts'
import { identify } from '../../../src/partners/owner.ts'
import { holdsCredential, replaceForwarding, toUpstreamFields } from '../../../src/proxy/forwarded-fields.ts'
import { LinkRewriter } from '../../../src/proxy/link-rewriter.ts'
import { createPathTest, segmentsOf } from '../../../src/proxy/path-pattern.ts'
import { createReadPlanner, toV2Refusal, v2ErrorRules, withoutPlaces } from '../../../src/translate/index.ts'
import { MAX_NODES_AT_ONCE, parseJson } from '../../../src/upstream/index.ts'
import {
  decodeBatchInSteps,
  decodeBatchReplyInSteps,
  decodeRecordBytes,
  defaultBatchLimits,
  guessBoundary,
  inspectBatchInSteps,
  isGenericClient,
  openReplyDecoding,
  readPreferences,
} from '../../../src/v2/index.ts'
import { readBatchReply } from '../../../src/v3/client/batch-reply.ts'
import { parsePostReply, readUpstreamError } from '../../../src/v3/outcome.ts'
import { outcomesOf } from '../../../src/writes/relayed-reply.ts'

/** A function that reads text from clients, services or operators. The function may throw an error that describes a fault of the text. */
export interface Reader {
  readonly name: string
  /** The length in characters of the longest text that can reach the reader at once. */
  readonly longest: number
  /** True if no client waits for the reader, because it runs in a background thread or reads a file at a start or reload. */
  readonly isOffLoop?: true
  /** Prepares the input from a text, and returns a function that reads it. */
  readonly prepare: (text: string) => () => unknown
}

const KIB = 1_024
const MIB = 1_024 * KIB
const HEAD = 128 * KIB
const TYPE = 'multipart/mixed; boundary=b'
const slicing = createSlicing()

type Prepare = Reader['prepare']
const ofBytes =
  (read: (bytes: Buffer) => unknown): Prepare =>
  (text) => {
    const bytes = Buffer.from(text)
    return () => read(bytes)
  }
const sliced = (toSteps: (bytes: Buffer) => Steps<unknown>): Prepare =>
  ofBytes((bytes) => runInSlices(toSteps(bytes), slicing.open()))

/** Splits a text into pieces of `size`, each in one part of a batch or of a reply. */
const inParts = (text: string, size: number, wrap: (piece: string) => string): string => {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += size) pieces.push(wrap(text.slice(at, at + size)))
  return `${pieces.join('')}--b--`
}
const part = (json: string): string =>
  `--b\nContent-Type: application/http\n\nPOST AttendanceRecords HTTP/1.1\n\n${json}\n`
const answer = (json: string): string =>
  `--b\nContent-Type: application/http\n\nHTTP/1.1 201 Created\n\n${json}\n`
const oneLine = (text: string): string => text.replaceAll(/[\r\n\0]/g, ' ')

const inspectSettings = {
  limits: defaultBatchLimits,
  serviceHosts: undefined,
  mapping: { eventType: 'E', codeType: 'C', changeProcessName: 'x', unmappedFields: 'report' },
  bodyProfile: 'full',
  boundary: undefined,
} as const

const batch = sliced((bytes) => decodeBatchInSteps(bytes, TYPE))
const checked = ofBytes((bytes) => inspectRecording(bytes, inspectSettings))
const inspected = sliced((bytes) => inspectBatchInSteps(bytes, TYPE))
const reply = sliced((bytes) => decodeBatchReplyInSteps(bytes, TYPE))

const writers: readonly Reader[] = [
  { name: 'V2 batch', longest: 32 * MIB, prepare: batch },
  { name: 'V2 batch, before its first delimiter', longest: 8 * MIB, prepare: (text) => batch(`${text}\n${part('{}')}--b--`) },
  { name: 'V2 batch, between two delimiters', longest: 8 * MIB, prepare: (text) => batch(`--b\n${text}\n--b--`) },
  { name: 'V2 batch, in the headers of parts', longest: 8 * MIB, prepare: (text) => batch(inParts(text, 30 * KIB, (piece) => part('{}').replace('\n\n', `\nx: ${piece}\n\n`))) },
  { name: 'V2 batch, in request lines', longest: 8 * MIB, prepare: (text) => batch(inParts(oneLine(text), 30 * KIB, (piece) => part('{}').replace('POST ', `POST ${piece} `))) },
  { name: 'V2 batch, before request lines', longest: 8 * MIB, prepare: (text) => batch(inParts(text, 30 * KIB, (piece) => part('{}').replace('POST', `${piece}\nPOST`))) },
  { name: 'V2 batch, in Prefer and Accept of parts', longest: 8 * MIB, prepare: (text) => batch(inParts(oneLine(text), 30 * KIB, (piece) => part('{}').replace('1.1\n', `1.1\nPrefer: ${piece}\nAccept: ${piece}\nContent-Type: a/b; ${piece}\n`))) },
  { name: 'V2 batch, in its records', longest: 8 * MIB, prepare: (text) => batch(inParts(text, 800 * KIB, part)) },
  { name: 'V2 record', longest: MIB, prepare: ofBytes((bytes) => decodeRecordBytes(bytes, 'application/json')) },
  { name: 'boundary of a file', longest: 4 * MIB, prepare: sliced(guessBoundary) },
  { name: 'check, a batch', longest: 4 * MIB, prepare: inspected },
  { name: 'check, in the headers of parts', longest: 4 * MIB, prepare: (text) => inspected(inParts(oneLine(text), 30 * KIB, (piece) => part('{}').replace('\n\n', `\nx: ${piece}\n\n`).replace('1.1', `1.1\nContent-Length: ${piece}`))) },
  { name: 'check, in its records', longest: 4 * MIB, prepare: (text) => inspected(inParts(text, 800 * KIB, (piece) => part(`${piece}'`))) },
  { name: 'check, a file', longest: 4 * MIB, prepare: checked },
  { name: 'check, a request', longest: 4 * MIB, prepare: (text) => checked(`POST /V2/Attendance/$batch HTTP/1.1\nContent-Type: ${TYPE}\n${text}`) },
] // prettier-ignore

/** Returns a function that reads the outcomes from a reply of V2 with this text, as the adapter does before it stores them. */
const relayed = (kind: 'batch' | 'record', text: string): (() => unknown) => {
  const fields = ['Content-Type', kind === 'batch' ? TYPE : 'application/json']
  const end = {
    kind: 'answered',
    reply: { status: 201, reason: '', fields, body: Buffer.from(text) },
  } as const
  return () => outcomesOf(end, kind, 1, { slices: slicing.open() })
}
const v3Batch = (text: string, contentType: string): (() => unknown) => {
  const body = Buffer.from(text)
  return () => readBatchReply({ status: 200, body, contentType, retryAfter: undefined }, 32, 0)
}

const replies: readonly Reader[] = [
  { name: 'reply of V2', longest: 8 * MIB, prepare: reply },
  { name: 'reply of V2, in a part', longest: 8 * MIB, prepare: (text) => reply(`${answer(text)}--b--`) },
  { name: 'reply of V2, in its headers', longest: 8 * MIB, prepare: (text) => reply(inParts(oneLine(text), 30 * KIB, (piece) => answer('{}').replace('Created', `Created\nx: ${piece}`))) },
  { name: 'reply of V2 to a batch, in its marks', longest: 8 * MIB, prepare: (text) => relayed('batch', `${answer(text)}--b--`) },
  { name: 'reply of V2 to a record', longest: 8 * MIB, prepare: (text) => relayed('record', text) },
  { name: 'reply of V2, as it arrives', longest: 8 * MIB, prepare: ofBytes(async (bytes) => {
    const decoding = openReplyDecoding(TYPE)
    decoding.push(Buffer.from('--b\nContent-Type: application/http\n\nHTTP/1.1 201 Created\n\n'))
    for (let at = 0; at < bytes.length; at += 64 * KIB) {
      decoding.push(bytes.subarray(at, at + 64 * KIB))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }) },
  { name: 'reply of V3 to a record', longest: MIB, prepare: (text) => () => parsePostReply(201, text, undefined, 0) },
  { name: 'refusal of V3', longest: MIB, prepare: (text) => () => toV2Refusal(readUpstreamError(400, text), v2ErrorRules) },
  { name: 'places in a message of V3', longest: 64 * KIB, prepare: (text) => () => withoutPlaces(text) },
  { name: 'Retry-After of V3', longest: HEAD, prepare: (text) => () => parsePostReply(429, text, text, 0) },
  { name: '$batch reply of V3, multipart', longest: MIB + 32 * 8 * KIB, prepare: (text) => v3Batch(text, TYPE) },
  { name: '$batch reply of V3, in a part', longest: MIB + 32 * 8 * KIB, prepare: (text) => v3Batch(`${answer(text)}--b--`, TYPE) },
  { name: '$batch reply of V3, in its headers', longest: (MIB + 32 * 8 * KIB) / 2, prepare: (text) => v3Batch(`--b\n${text}\n\nHTTP/1.1 201 Created\n${text}\n\n{}\n--b--`, TYPE) },
  { name: '$batch reply of V3, JSON', longest: MIB + 32 * 8 * KIB, prepare: (text) => v3Batch(text, 'application/json') },
  { name: 'JSON of a reply', longest: 4 * MIB, prepare: (text) => () => parseJson(text, MAX_NODES_AT_ONCE) },
  { name: 'links of a reply', longest: 8 * MIB, prepare: ofBytes(async (bytes) => {
    const rewriter = new LinkRewriter({ rewritings: [{ from: 'http://v3.test', to: 'http://adapter.test' }], requested: 'http://v3.test/x' })
    for (let at = 0; at < bytes.length; at += 64 * KIB) {
      rewriter.write(bytes.subarray(at, at + 64 * KIB), at + 64 * KIB >= bytes.length)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }) },
  { name: 'credentials in a field of a reply', longest: HEAD, prepare: (text) => () => holdsCredential(text, ['credential-of-the-adapter']) },
] // prettier-ignore

function requestOf(headers: Readonly<Record<string, string>>, url = '/'): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  const own = { host: 'adapter.test', ...headers }
  request.url = url
  request.rawHeaders = Object.entries(own).flat()
  request.headers = own
  return request
}

const credentials = { authorization: 'bearer x', subscriptionKey: 'k' }
const planner = createReadPlanner(() => 0)
const rules = { needsRecordedBy: true, unmarkedCodes: [], histories: false }
const week =
  '$filter=AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart le 2026-03-06T23:00:00Z'
const owner = {
  id: 'p',
  match: { any: true },
  identityClaims: ['iss', 'sub'],
  unit: { claim: 'school' },
  tokens: undefined,
}
const claims: Prepare = (text) => () =>
  identify(owner, { ...credentials, authorization: `bearer a.${Buffer.from(text).toString('base64url')}.c` })

const heads: readonly Reader[] = [
  { name: 'target', longest: HEAD, prepare: (text) => () => readTarget(`/${text}`) },
  { name: 'target, visible', longest: HEAD, prepare: (text) => () => readTarget(`/V3/${encodeURI(oneLine(text)).slice(0, HEAD)}?${oneLine(text)}`) },
  { name: 'path on the list', longest: 2_048, prepare: (text) => () => ['/*a*a*z', '/**/a/**/a/**/z', '/**/*a*/**/*a*'].map((pattern) => createPathTest(pattern)(segmentsOf(`/${text}`))) },
  { name: 'media type', longest: HEAD, prepare: (text) => () => parseMediaType(`multipart/mixed${text}`) },
  { name: 'parameters of a media type', longest: HEAD, prepare: (text) => () => parseMediaType(`a/b; c="${oneLine(text)}"; ${oneLine(text)}`) },
  { name: 'Prefer and Accept', longest: HEAD, prepare: (text) => () => [readPreferences(text, text), isGenericClient({ accept: text })] },
  { name: 'Connection and other fields', longest: HEAD, prepare: (text) => () => toUpstreamFields(requestOf({ connection: oneLine(text), 'x-a': oneLine(text) }), { credentials, identity: true }) },
  { name: 'fields with distinct names', longest: HEAD, prepare: (text) => () => toUpstreamFields(requestOf(Object.fromEntries(text.split('\n').slice(0, 2_000).map((line, index) => [`x${index}`, line]))), { credentials, identity: true }) },
  { name: 'X-Forwarded-For', longest: HEAD, prepare: (text) => () => replaceForwarding(requestOf({ 'x-forwarded-for': oneLine(text), 'x-forwarded-proto': oneLine(text), 'x-forwarded-prefix': oneLine(text) }), { trustedProxies: createAddressList(['10.0.0.0/8', '::/0']) }) },
  { name: 'Authorization', longest: HEAD, prepare: (text) => () => [readClientCredentials({ authorization: `bearer ${text}`, 'ocp-apim-subscription-key': 'k' }), identify(owner, { ...credentials, authorization: `bearer ${text}` })] },
  { name: 'claims of a token', longest: 40 * KIB, prepare: claims },
  { name: 'a claim of a token', longest: 40 * KIB, prepare: (text) => claims(JSON.stringify({ iss: text, sub: text.split(','), exp: 1 })) },
] // prettier-ignore

const queries: readonly Reader[] = [
  { name: 'query of a read', longest: HEAD, prepare: (text) => () => planner.plan(text, rules) },
  { name: 'filter of a read', longest: HEAD, prepare: (text) => () => planner.plan(`${week} and (${text})`, rules) },
  { name: 'options of a read', longest: HEAD, prepare: (text) => () => planner.plan(`${week}&${text}`, rules) },
  ...['$select', '$orderby', '$expand', '$top', '$skiptoken', '$format', '@a'].map((option) => ({ name: `${option} of a read`, longest: HEAD, prepare: (text: string) => () => planner.plan(`${week}&${option}=${text}`, rules) })),
  { name: 'skip token', longest: HEAD, prepare: (text) => () => planner.tokenOf(`$skiptoken=${text}`) },
  { name: 'filter', longest: HEAD, prepare: (text) => () => parseFilter(text) },
  { name: '$expand', longest: HEAD, prepare: (text) => () => parseExpand(text) },
  { name: 'key', longest: HEAD, prepare: (text) => () => parseKey(text) },
  { name: 'resource path', longest: HEAD, prepare: (text) => () => parseResourcePath(text) },
] // prettier-ignore

const files: readonly Reader[] = [
  { name: 'configuration', isOffLoop: true, longest: 16 * KIB, prepare: (text) => () => readYaml(text) },
  { name: 'target in a recording', isOffLoop: true, longest: HEAD, prepare: (text) => () => maskTarget(`/V3?${text}`) },
  { name: 'tokens in a recording', isOffLoop: true, longest: HEAD, prepare: (text) => () => maskTokens(text) },
  { name: 'body in a recording', isOffLoop: true, longest: MIB, prepare: ofBytes((body) => [...splitMessage({ fields: ['Content-Type', TYPE], body })].length) },
  { name: 'answer in a comparison', isOffLoop: true, longest: MIB, prepare: (text) => () => marksOf(readBody(text)) },
  { name: 'mark in a comparison', isOffLoop: true, longest: MIB, prepare: (text) => () => compareBodies(readBody(text), readBody('{"Learner":"x"}'), undefined, new Findings()) },
  { name: 'refusal in a comparison', isOffLoop: true, longest: MIB, prepare: (text) => () => compareBodies(readBody(`[${text}]`), [], undefined, new Findings()) },
] // prettier-ignore

export const readers: readonly Reader[] = [...writers, ...replies, ...heads, ...queries, ...files]

/** Returns readers that render console pages with long or many values. The pages are written in JSX, so they come from the build. */
export async function pageReaders(): Promise<readonly Reader[]> {
  const load = (name: string): Promise<unknown> =>
    import(new URL(`../../../dist/console/pages/${name}.js`, import.meta.url).href)
  const [{ renderPage }, { table }, { tryIt }] = [
    (await load('layout')) as typeof Layout,
    (await load('parts')) as typeof Parts,
    (await load('try')) as typeof Try,
  ]
  const rows = table<string>('Rows', 'None.', [['Value', (row) => row]])
  return [
    { name: 'page with a long value', longest: MIB / 2, prepare: (text) => () => renderPage({ title: text.slice(0, 100), body: rows([text]), json: undefined }, {}) },
    { name: 'page of a batch that was tried', longest: 4 * MIB, prepare: (text) => async () => renderPage(await tryPage(tryIt, text), {}) },
    { name: 'page with many rows', longest: 64 * KIB, prepare: (text) => () => renderPage({ title: '', body: rows(text.match(/.{1,128}/gs) ?? []), json: undefined }, {}) },
  ] // prettier-ignore
}

/** Returns the console page that shows a batch whose values are this text. */
async function tryPage(
  { act }: typeof Try.tryIt,
  text: string,
): Promise<Parameters<typeof Layout.renderPage>[0]> {
  const part = `HTTP/1.1 201 Created\r\n\r\n${text}`
  const reply: TriedReply = {
    head: 'HTTP/1.1 200 OK',
    parts: [{ ifAccepted: part, otherwise: part }],
    end: '--b--',
    v3Id: 'aa',
  }
  const records = [{ part: 1, contentId: undefined, v3: text }]
  const file = Buffer.from(text)
  const finding = { severity: 'note', code: 'C', message: 'm', remedy: 'r', part: 1 } as const
  const findings = Array.from({ length: 200 }, (_, index) => ({ ...finding, offset: file.length - index }))
  const ports = {
    stages: { list: () => Promise.resolve([{ document: { partner: 'p' } }]) },
    tryBatch: () =>
      Promise.resolve({ bytes: file.length, isSound: true, isBody: true, records, findings, reply }),
  } as unknown as ConsolePorts
  const visit = {
    actor: { name: 'olga', role: 'operator' },
    signedIn: { token: 't' },
    form: new URLSearchParams({ partner: 'p' }),
    file,
  } as unknown as Visit
  const shown = await act?.(visit, ports)
  return shown !== undefined && 'body' in shown ? shown : { title: '', body: undefined, json: undefined }
}
