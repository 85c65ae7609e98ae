import { Client } from 'undici'

import { serveCommands } from './child.ts'
import { type LegacyBatch, legacyBatch } from './legacy-batch.ts'

// V2 clients, each with a class of its own: sends a batch of 30, reads the whole reply, and sends the next. Arguments: port,
// clients, ms.

const RECORDS = 30
const PATH = '/V2/Attendance/$batch'
const [port, clients, durationMs] = process.argv.slice(2).map(Number)
const CREATED = Buffer.from('HTTP/1.1 201 Created\r\n')

let sent = 0
const connections = Array.from({ length: clients ?? 16 }, () => new Client(`http://127.0.0.1:${port ?? 0}`))

async function sendBatch(client: Client, template: LegacyBatch): Promise<void> {
  sent += 1
  const { bytes, contentType } = nextBatch(template, sent)
  const { statusCode, body } = await client.request({
    method: 'POST',
    path: PATH,
    headers: {
      'Content-Type': contentType,
      Authorization: 'bearer bench',
      'Ocp-Apim-Subscription-Key': 'bench',
    },
    body: bytes,
  })
  const created = countCreated(Buffer.from(await body.arrayBuffer()))
  if (statusCode !== 200 || created !== RECORDS)
    throw new Error(`${statusCode}, ${created} of ${RECORDS} created`)
}

const templates = connections.map((_client, index) => legacyBatch(RECORDS, 0x7fffffff, index * RECORDS))
const digits = (templates[0]?.contentType.length ?? 12) - 12
const id = templates[0]?.contentType.slice(digits) ?? ''

/** A batch with ids of its own: the same bytes twice would be a repeated request, not new marks. */
function nextBatch(template: LegacyBatch, number: number): LegacyBatch {
  const own = number.toString(16).padStart(12, '0')
  const bytes = Buffer.from(template.bytes)
  for (let at = bytes.indexOf(id); at !== -1; at = bytes.indexOf(id, at + 12)) bytes.write(own, at, 'latin1')
  return { bytes, contentType: template.contentType.slice(0, digits) + own }
}

function countCreated(reply: Buffer): number {
  let count = 0
  for (let at = reply.indexOf(CREATED); at !== -1; at = reply.indexOf(CREATED, at + CREATED.length))
    count += 1
  return count
}

serveCommands(
  {},
  {
    run: async () => {
      const before = sent
      const start = performance.now()
      await Promise.all(
        connections.map(async (client, index) => {
          const template = templates[index]
          while (template !== undefined && performance.now() - start < (durationMs ?? 1000))
            await sendBatch(client, template)
        }),
      )
      const ms = performance.now() - start
      return { marks: (sent - before) * RECORDS, ms }
    },
  },
)
