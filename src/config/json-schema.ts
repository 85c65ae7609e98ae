import * as z from 'zod'

import { configSchema } from './schema.ts'

/** The members of a JSON Schema that the configuration's uses. */
export interface JsonSchemaNode {
  $schema?: string
  title?: string
  description?: string
  format?: string
  type?: string
  pattern?: string
  properties?: Record<string, JsonSchemaNode>
  required?: readonly string[]
  additionalProperties?: boolean
  items?: JsonSchemaNode
  anyOf?: JsonSchemaNode[]
  default?: unknown
}

const secretSource = (name: 'env' | 'file', description: string): JsonSchemaNode => ({
  type: 'object',
  properties: { [name]: { type: 'string', description } },
  required: [name],
  additionalProperties: false,
})

/** The reference to a secret in the file; loading replaces it before validation. */
const secret: readonly JsonSchemaNode[] = [
  secretSource('env', 'Name of the environment variable that holds the secret.'),
  secretSource('file', 'Path of the file that holds the secret.'),
]

/**
 * The configuration file as a JSON Schema (draft-07, which the YAML language server and most editors read), with the meaning
 * and the default of every key. It covers single values; conflicts between them, such as a partner that no request reaches, are
 * found by `config check` only.
 */
export function createConfigJsonSchema(): JsonSchemaNode {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // Secret is the only custom type of the configuration.
      if (zodSchema._zod.def.type === 'custom') Object.assign(jsonSchema, { anyOf: structuredClone(secret) })
      // Validators reject this name of zod's; the pattern beside it has the same meaning.
      if (jsonSchema.format === 'starts_with') delete jsonSchema.format
    },
  }) as JsonSchemaNode
  return { ...schema, title: 'Configuration of Markbridge' }
}
