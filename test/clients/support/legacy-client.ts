import { randomUUID } from 'node:crypto'
import { request } from 'node:http'

/** Choices for the form of a batch. service.md 4.2 shows both prefixes. */
export interface LegacyChoices {
  readonly prefix?: 'batch' | 'changeset'
  readonly lineEnd?: '\r\n' | '\n'
  /** The GUID in the boundary of the Content-Type header. By default it is the GUID of the changeset, as the interface requires. */
  readonly headerId?: string
  /** The path of the request inside each part, before `/AttendanceServiceFarm1`. */
  readonly innerPath?: string
}

export interface LegacyAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

export interface LegacyPart {
  readonly contentId: string
  readonly status: number
  readonly json: unknown
}

/**
 * Posts one changeset with the bytes of service.md 4.2: exactly the headers and lines that the interface shows, with Content-IDs from 1.
 * `address` is the URL of `$batch`.
 */
export function postLegacy(
  address: string,
  headers: Readonly<Record<string, string>>,
  records: readonly object[],
  choices: LegacyChoices = {},
): Promise<LegacyAnswer> {
  const { prefix = 'batch', lineEnd = '\r\n', innerPath = '/sp-api-write-back-partner-live' } = choices
  const [batch, changeset] = [randomUUID(), randomUUID()]
  const lines = [
    `--batch_${batch}`,
    `Content-Type: multipart/mixed; boundary=changeset_${changeset}`,
    '',
    ...records.flatMap((record, index) => [
      `--changeset_${changeset}`,
      'Content-Type: application/http',
      'Content-Transfer-Encoding: binary',
      `Content-ID: ${index + 1}`,
      '',
      `POST ${innerPath}/AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1`,
      'Content-Type: application/json;odata.metadata=minimal',
      'Prefer: return=representation',
      'Accept: application/json;odata.metadata=minimal',
      'Accept-Charset: UTF-8',
      '',
      JSON.stringify({ '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord', ...record }),
    ]),
    `--changeset_${changeset}--`,
    `--batch_${batch}--`,
    '',
  ]
  const contentType = `multipart/mixed; boundary=${prefix}_${choices.headerId ?? changeset}`
  return send(address, { ...headers, 'Content-Type': contentType }, lines.join(lineEnd))
}

/** Reads a flat reply line by line, as a legacy program does: each line with the boundary of the header begins a part. */
export function readLegacy({ contentType, text }: LegacyAnswer): LegacyPart[] {
  const boundary = `--${contentType.split('boundary=')[1] ?? ''}`
  const parts: string[][] = []
  for (const line of text.split('\r\n')) {
    if (line === `${boundary}--`) return parts.map(readPart)
    if (line === boundary) parts.push([])
    else parts.at(-1)?.push(line)
  }
  throw new Error('the reply has no end')
}

function readPart(lines: readonly string[]): LegacyPart {
  const valueOf = (pattern: RegExp): string =>
    lines.flatMap((line) => pattern.exec(line)?.[1] ?? []).at(0) ?? ''
  const status = Number(valueOf(/^HTTP\/1\.1 (\d{3}) /))
  const json: unknown = JSON.parse(lines.at(-1) ?? '')
  return { contentId: valueOf(/^Content-ID: (.*)$/), status, json }
}

function send(
  address: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<LegacyAnswer> {
  return new Promise((resolve, reject) => {
    const post = request(address, { method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          contentType: response.headers['content-type'] ?? '',
          text: Buffer.concat(chunks).toString('utf8'),
        })
      })
    })
    post.once('error', reject)
    post.end(body)
  })
}
