import fc from 'fast-check'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { byteArrays, bytes, literal, numbers, texts } from '../../../src/journal/postgres/literals.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

const hostile = [`'; drop table x; --`, `\\`, `\\'`, `"{}",null`, `$1`, `$$`, `E'\\n'`, 'null', '', `é\n😀\t`]

describe.skipIf(missingPostgres() !== undefined)('literals of PostgreSQL', () => {
  let postgres: TestPostgres
  let client: Client
  beforeAll(async () => {
    postgres = await startPostgres()
    client = new Client({ connectionString: await postgres.createDatabase() })
    await client.connect()
    await client.query(
      'prepare as_text (text) as select $1 as value; prepare as_texts (text[]) as select $1 as value',
    )
    await client.query(
      'prepare as_bytes (bytea) as select $1 as value; prepare as_byte_arrays (bytea[]) as select $1 as value',
    )
    await client.query('prepare as_numbers (float8[]) as select $1 as value')
  })
  afterAll(async () => {
    await client.end()
    await postgres.close()
  })
  const read = async (statement: string, parameter: string): Promise<unknown> =>
    (await client.query<{ value: unknown }>(`execute ${statement}(${parameter})`)).rows[0]?.value

  it.each(hostile)('keep the text %j as it is, alone and among others', async (text) => {
    expect(await read('as_text', literal(text))).toBe(text)
    expect(await read('as_texts', texts([null, text, 'b']))).toEqual([null, text, 'b'])
  })

  it('keep any texts, bytes and numbers', async () => {
    const text = fc.string({ unit: 'binary' }).filter((one) => !one.includes('\u0000'))
    const blob = fc.uint8Array({ maxLength: 40 }).map((one) => Buffer.from(one))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(text)),
        fc.array(blob),
        fc.array(fc.option(fc.maxSafeInteger())),
        async (some, blobs, counts) => {
          expect(await read('as_texts', texts(some))).toEqual(some)
          expect(await read('as_byte_arrays', byteArrays(blobs))).toEqual(blobs)
          expect(await read('as_numbers', numbers(counts))).toEqual(counts)
          expect(await read('as_bytes', bytes(blobs[0] ?? null))).toEqual(blobs[0] ?? null)
        },
      ),
      { numRuns: 60 },
    )
  })
})
