import { z } from 'zod'

import { attendanceV2Model } from '../model/attendance.ts'
import { serviceModel, serviceSets } from '../model/service-model.ts'
import { createModelIndex, type ServiceModel, toServiceDocument, writeEdmx } from '../odata/index.ts'
import { answerOperations } from './answer-batch.ts'
import { createAttendanceService } from './attendance/attendance-service.ts'
import { createFaultPlan, type FaultPlan } from './control/faults.ts'
import { createControlRoutes } from './control/routes.ts'
import { readBody, type Setting } from './control/setting.ts'
import { formatInstant } from './dates.ts'
import { jsonMediaType, jsonReply, methodNotAllowed, notFound, odataError, type Reply } from './http/reply.ts'
import {
  findRoute,
  isLegacy,
  portOf,
  type Route,
  type RoutedRequest,
  type PortService,
  type Service,
  type ServiceRequest,
} from './http/request.ts'
import { createHttpPort, type PortParts } from './http/server.ts'
import { createLearnerService } from './learner/learner-service.ts'
import { lookupSets } from './learner/samples.ts'
import { createLegacyService } from './legacy/legacy-service.ts'
import { readOptions, type SandboxOptions } from './options.ts'
import { levelOf } from './query/presentation.ts'
import { createRandom } from './random.ts'
import { openSchool, type School } from './school.ts'
import { createSecurity } from './security.ts'

const clockSchema = z.strictObject({ now: z.iso.datetime({ offset: true }) })

export interface Sandbox {
  /**
   * Starts to listen. Resolves with the port, and with the base URL without a trailing slash. `v2Url` is the base URL of V2, which differs
   * from `url` only if V2 has a separate port. Rejects with `ADP_CONFIGURATION` if the sandbox cannot listen.
   */
  listen(): Promise<{ url: string; port: number; v2Url: string }>
  close(): Promise<void>
}

/**
 * Creates a sandbox, which takes the place of the service of service.md. The sandbox is strict, and serves seeded data from one SQLite
 * database in this process. The subscription key `sandbox` and the bearer token `sandbox` are always accepted.
 *
 * Options and defaults:
 * - `host`: '127.0.0.1'.
 * - `port`: 0, which means any free port.
 * - `seed`: 1.
 * - `scale`: 'class' (30 current learners) or 'school' (a whole school with its history). Defaults to 'class'.
 * - `db`: ':memory:' or a file. Defaults to ':memory:'.
 * - `now`: an ISO date-time at which the clock of the sandbox stands still. Defaults to the clock of the machine. Ages, roll states, school
 *   years and the last filled register depend on this clock.
 * - `onExisting`: the result of a POST for a session that has a mark: 'replace', 'duplicate' or 'conflict'. Defaults to 'replace'.
 * - `pageSize`: the maximum number of rows of a page. Defaults to 1000.
 * - `maxDays`: the longest date range of an attendance read in days. Defaults to 90.
 * - `batch`: true if V3 has `$batch`. Defaults to true.
 * - `maxBodyBytes`: the maximum size of a request body. Defaults to 32 MiB.
 * - `keys`, `tokens` [{ token, domains }]: further credentials that are accepted.
 * - `clients` [{ id, secret, organisation, domains }]: further clients of `POST /connect/token`.
 * - `callsPerSecond`: the rate limit of each key. Defaults to no limit.
 * - `v2Port`: a separate port for V2 with its own faults, or 0 for any free port. The first port then does not serve V2.
 * - `v2` { keys, tokens, callsPerSecond }: the gateway of V2. `keys` and `tokens` default to the options above.
 *
 * `onProgress` receives the completed share, from 0 to 1, while a database is seeded or its registers are filled in.
 *
 * Throws `ADP_USAGE` for invalid options, and for a database file that cannot be opened or that another seed or scale filled.
 */
export function createSandbox(
  options: SandboxOptions = {},
  onProgress: (share: number) => void = () => undefined,
): Sandbox {
  const settings = readOptions(options)
  let fixedMs = settings.now === undefined ? undefined : Date.parse(settings.now)
  const now = (): number => fixedMs ?? Date.now()
  const clock: Setting = {
    current: () => ({ now: formatInstant(now()) }),
    put: (body) => {
      fixedMs = Date.parse(readBody(clockSchema, body, 'The clock').now)
    },
    clear: () => {
      fixedMs = undefined
    },
  }
  const school = openSchool(settings, now, onProgress)
  const { seed, maxBodyBytes, host, port, v2Port } = settings
  const service = createService(school)
  const { valueRules, legacyForm, differences } = school
  const plans: FaultPlan[] = []
  const reset = (): void => {
    school.undoWrites()
    for (const setting of [...plans, valueRules, legacyForm, differences]) setting.clear()
  }
  const lastSeq = (lagMs?: number): number =>
    school.marks.lastSeq(lagMs === undefined ? undefined : now() - lagMs)
  const createPort = (
    stream: string,
    serves: (route: Route) => boolean,
    gateway: Pick<PortParts, 'admit' | 'issueToken'>,
    address: { port: number; option: string | undefined },
  ) => {
    const faults = createFaultPlan(createRandom(seed, stream), lastSeq)
    plans.push(faults)
    const settings = {
      '/faults': faults,
      '/values': valueRules,
      '/legacy-form': legacyForm,
      '/differences': differences,
      '/clock': clock,
    }
    return createHttpPort(
      {
        ...{ ...gateway, faults, maxBodyBytes },
        service: service({ serves, disturb: faults.strikeInside }),
        control: createControlRoutes({ school, settings, reset }),
      },
      { host, ...address },
    )
  }
  const { admit, admitV2, issueToken } = createSecurity(settings, school.ids.guid('user', 0), now)
  const isWhole = v2Port === undefined
  const main = createPort(
    'faults',
    (route) => isWhole || portOf(route) === 'V3',
    { admit, issueToken },
    { port, option: undefined },
  )
  const legacy = isWhole
    ? undefined
    : createPort(
        'v2 faults',
        (route) => portOf(route) === 'V2',
        { admit: admitV2, issueToken: undefined },
        { port: v2Port, option: '--v2-port' },
      )
  return {
    listen: async () => {
      const opened = await main.listen()
      return { ...opened, v2Url: (await legacy?.listen())?.url ?? opened.url }
    },
    close: async () => {
      await Promise.all([main.close(), legacy?.close()])
      school.database.close()
    },
  }
}

interface ServicePort {
  /** Returns true if the port serves the resource. Requests for other resources get 404. */
  readonly serves: (route: Route) => boolean
  readonly disturb: (method: string, path: string) => Reply | undefined
}

/** Creates the data service of a school, which one or more ports offer. The service throws `QueryError` for invalid queries. */
function createService(school: School): (port: ServicePort) => PortService {
  const { pageSize, batch } = school.settings
  const index = createModelIndex(serviceModel)
  const queryContext = () => ({ index, now: school.now(), pageSize })
  const attendance = createAttendanceService(school, queryContext)
  const learner = createLearnerService(school, queryContext)
  const legacy = createLegacyService(school)
  const answer = (request: RoutedRequest): Reply => {
    const description = answerMetadata(request)
    if (description !== undefined) return description
    if (request.route.area === 'Learner') return learner(request)
    return isLegacy(request.route) ? legacy(request) : attendance(request)
  }
  return ({ serves, disturb }) => {
    const find = ({ path }: ServiceRequest): Route | undefined => {
      const route = findRoute(path)
      return route !== undefined && serves(route) ? route : undefined
    }
    const single: Service = (request) => {
      const route = find(request)
      return route === undefined ? notFound : answer({ ...request, route })
    }
    return (request) => {
      const route = find(request)
      // The learner domains have the batch of V3 at V1 and V2 too. Attendance at V1 and V2 has the batch of the obsolete interface.
      const isBatch = route?.resource.join('/').toLowerCase() === '$batch' && !isLegacy(route)
      if (!isBatch) return single(request)
      // `$batch` of V3 can be switched off, because the real service announced `$batch` but never showed it (service-facts 3).
      if (!batch) return notFound
      if (request.method !== 'POST') return methodNotAllowed('POST')
      return answerOperations({ service: single, attempt: school.attempt, disturb }, { ...request, route })
    }
  }
}

/** Returns the model with only the sets that one root serves, for the `$metadata` and the service document of the root. */
function modelWith(isServed: (set: string) => boolean): ServiceModel {
  const { container } = serviceModel
  const entitySets = container.entitySets.filter(({ name }) => isServed(name))
  return { ...serviceModel, container: { ...container, entitySets } }
}

const isAttendance = (set: string): boolean =>
  serviceSets.some(({ name, securityDomain }) => name === set && securityDomain === 'Attendance')
const isLookup = (set: string): boolean => set === 'AttendanceLookups' || lookupSets[set] !== undefined

/** The model of each root, so that its service document lists exactly the sets that can be read below the root. */
const rootModels = {
  Learner: modelWith((set) => !isAttendance(set)),
  Attendance: modelWith(isAttendance),
  LearnerLookup: modelWith((set) => isLookup(set) && !isAttendance(set)),
  AttendanceLookup: modelWith((set) => isLookup(set) && isAttendance(set)),
  // V2 offers only the registrations (service.md 9).
  LearnerV2: modelWith((set) => set === 'LearnerRegistrations'),
  Legacy: attendanceV2Model,
}

const notAcceptable = odataError(
  406,
  'NotAcceptable',
  '$metadata is available only as application/xml. Nothing was read. Leave out $format.',
)

/** Answers a request for the service document or `$metadata` of a root. Returns `undefined` for any other path. */
function answerMetadata(request: RoutedRequest): Reply | undefined {
  const { route, origin } = request
  const [name, ...rest] = route.resource
  const asksMetadata = name?.toLowerCase() === '$metadata'
  if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
  if (request.method !== 'GET') return methodNotAllowed('GET')
  const model = rootModels[modelOf(route)]
  const format = formatOf(request)
  if (asksMetadata) {
    // The Accept header is ignored (RFC 9110 12.5.1), because clients send the Accept header for data with every request.
    if (format !== undefined && !/^(application\/)?xml$/i.test(format)) return notAcceptable
    const headers = { 'Content-Type': 'application/xml', 'OData-Version': '4.0' }
    return { status: 200, headers, body: writeEdmx(model) }
  }
  const level = levelOf(format, request)
  const { value, ...context } = toServiceDocument(model, `${origin}${route.root}/$metadata`)
  const document = level === 'none' ? { value } : { ...context, value }
  return jsonReply(200, JSON.stringify(document), { 'Content-Type': jsonMediaType(level) })
}

function modelOf(route: Route): keyof typeof rootModels {
  const { area, version, isLookup } = route
  if (isLegacy(route)) return 'Legacy'
  if (isLookup) return `${area}Lookup`
  return area === 'Learner' && version === 2 ? 'LearnerV2' : area
}

function formatOf({ query }: ServiceRequest): string | undefined {
  const options = new URLSearchParams(query)
  return options.get('$format') ?? options.get('format') ?? undefined
}
