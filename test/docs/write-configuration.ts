import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { createConfigJsonSchema, type JsonSchemaNode } from '../../src/config/schema.ts'

/** The page whose tables are generated from the schema. `npm run docs` writes the page. */
export const configurationPage = fileURLToPath(new URL('../../docs/configuration.md', import.meta.url))

/** The line that ends the hand-written text. The generated tables follow it. */
const START = '<!-- Made by `npm run docs`. -->\n'

/** Returns the text of the page with the tables of the current schema. */
export async function makeConfigurationPage(): Promise<string> {
  const [introduction = ''] = (await readFile(configurationPage, 'utf8')).split(START)
  const sections = Object.entries(createConfigJsonSchema().properties ?? {}).map(([name, node]) =>
    [`### ${name}\n`, `${node.description ?? ''}\n`, '| key | default | meaning |', '|---|---|---|', ...rowsOf(node, name)]
      .join('\n')
      .concat('\n'),
  ) // prettier-ignore
  return `${introduction}${START}\n${sections.join('\n')}`
}

function rowsOf(node: JsonSchemaNode, path: string): readonly string[] {
  // The introduction of the page describes secrets, so the members of a secret are left out.
  const members = Object.entries(node.properties ?? {}).filter(([name]) => name !== 'env' && name !== 'file')
  const own = members.flatMap(([name, child]) => {
    const inner = `${path}.${name}`
    const rows = rowsOf(child, inner)
    const isSection = rows.length > 0 && child.properties !== undefined
    const meaning = child.description?.replaceAll('|', '\\|') ?? ''
    const shown = isSection || child.default === undefined ? '' : `\`${JSON.stringify(child.default)}\``
    return [`| \`${inner}\` | ${shown} | ${meaning} |`, ...rows]
  })
  const choices = (node.anyOf ?? []).flatMap((choice) => rowsOf(choice, path))
  return [...own, ...choices, ...(node.items === undefined ? [] : rowsOf(node.items, `${path}[]`))]
}

if (import.meta.main) await writeFile(configurationPage, await makeConfigurationPage())
