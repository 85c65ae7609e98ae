import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The content of a log, a report or a file that the product wrote. */
export interface Output {
  readonly name: string
  readonly bytes: Buffer
}

export function textOutput(name: string, text: string): Output {
  return { name, bytes: Buffer.from(text) }
}

/** Reads every file below a folder. The path of each file is searched too. */
export function filesBelow(folder: string): Output[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const name = relative(folder, path)
      return { name, bytes: Buffer.concat([Buffer.from(`${name}\n`), readFileSync(path)]) }
    })
}

/** Returns the markers that occur in the outputs, in any form such as hex, base64 or UTF-16, as `output: form of marker`. */
export function findMarkers(outputs: readonly Output[], markers: readonly string[]): string[] {
  const forms = markers.flatMap((marker) => formsOf(marker).map((form) => ({ ...form, marker })))
  return outputs.flatMap(({ name, bytes }) =>
    forms
      .filter(({ needle }) => bytes.includes(needle))
      .map(({ form, marker }) => `${name}: ${form} of ${marker}`),
  )
}

interface Form {
  readonly form: string
  readonly needle: Buffer
}

function formsOf(marker: string): Form[] {
  const texts: Record<string, string> = {
    text: marker,
    'lower case': marker.toLowerCase(),
    'upper case': marker.toUpperCase(),
    percent: encodeURIComponent(marker),
    json: JSON.stringify(marker).slice(1, -1),
    hex: Buffer.from(marker).toString('hex'),
    ...(isGuid(marker) ? { digits: marker.replaceAll('-', '') } : {}),
  }
  const forms = Object.entries(texts).map(([form, text]): Form => ({ form, needle: Buffer.from(text) }))
  const raw = isGuid(marker)
    ? [{ form: 'bytes', needle: Buffer.from(marker.replaceAll('-', ''), 'hex') }]
    : []
  return [...forms, { form: 'utf-16', needle: Buffer.from(marker, 'utf16le') }, ...raw, ...base64(marker)]
}

/** Returns the base64 forms of a text at its three possible shifts, without the letters that depend on neighbouring bytes. */
function base64(marker: string): Form[] {
  return [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + marker).toString('base64')
    const needle = text.slice(shift === 0 ? 0 : 4, Math.floor((shift + marker.length) / 3) * 4)
    return { form: `base64 at ${shift}`, needle: Buffer.from(needle) }
  })
}

const isGuid = (text: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
