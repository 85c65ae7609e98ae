import type { ModelIndex, QueryOptions } from '../../odata/index.ts'
import { contextRoot } from '../edge/request.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { readPreferences } from '../../v2/index.ts'
import type { MetadataLevel } from '../../v2/index.ts'
import { describeFully } from './describe-entity.ts'
import type { Describe } from './describe-entity.ts'

/** How an answer is annotated (OData JSON format 3.1). */
export interface Presentation {
  /** URL of the service root. */
  readonly root: string
  readonly level: MetadataLevel
  /** Adds what `odata.metadata=full` asks for; undefined at the other levels. */
  readonly describe: Describe | undefined
}

/** The level that a client asks for: `$format` wins over `Accept` (OData protocol 8.2.1), also where it names no level. */
export function levelOf(format: string | undefined, request: ServiceRequest): MetadataLevel {
  return readPreferences('', format ?? request.header('accept') ?? '').metadata
}

/** How the answer to a request is annotated; `describe` is another way to write the full level (the legacy face). */
export function presentationOf(
  options: QueryOptions,
  route: Route,
  request: ServiceRequest,
  index: ModelIndex,
  describe?: Describe,
): Presentation {
  const level = levelOf(options.format, request)
  const root = contextRoot(route, request)
  return {
    root,
    level,
    describe: level === 'full' ? (describe ?? describeFully(root, index)) : undefined,
  }
}
