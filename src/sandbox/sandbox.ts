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

/** A stand-in service; it runs after `listen`. */
export interface Sandbox {
  /**
   * Starts to listen. Resolves to the base address, without a slash at the end, and the port. `v2Url` is the base address of
   * the V2 face: the same one, unless it has a port of its own. Error: `ADP_CONFIGURATION` where it cannot.
   */
  listen(): Promise<{ url: string; port: number; v2Url: string }>
  /** Ends all connections and closes the database. */
  close(): Promise<void>
}

/**
 * Creates the stand-in service of service.md: strict, seeded, in one process, on one SQLite store. Key `sandbox` with
 * bearer `sandbox` is always accepted.
 *
 * Options, with their defaults: `host` '127.0.0.1', `port` 0 (any free one), `seed` 1, `scale` 'class' (30 current
 * learners) or 'school', `db` ':memory:' or a file, `now` (ISO date-time: a fixed clock; default the
 * machine's clock; it decides ages, roll states, years and how far registers are filled in), `onExisting` 'replace' | 'duplicate' |
 * 'conflict' (what POST does on a marked session), `pageSize` 1000, `maxDays` 90 (longest range of an attendance read), `batch` true
 * (whether V3 has `$batch`), `maxBodyBytes` 32 MiB.
 * Callers besides the built-in one: `keys`, `tokens` [{ token, domains }], `clients` [{ id, secret, organisation, domains }]
 * of `POST /connect/token`; `callsPerSecond` of one key, none by default.
 * `v2Port` (0: any free one) gives the V2 face a port of its own, which the first port then does not serve, with faults of its own; `v2`
 * { keys, tokens, callsPerSecond } is its gateway: keys and tokens default to those above.
 *
 * `onProgress` gets the share of the school that is built, 0 to 1, where the database is new or has registers to fill in.
 *
 * Errors: `ADP_USAGE` for wrong options, and for a database file that cannot be opened or has other content.
 */
export function createSandbox(
  options: SandboxOptions = {},
  onProgress: (share: number) => void = () => undefined,
): Sandbox {
  const settings = readOptions(options)
  let fixedMs = settings.now === undefined ? undefined : Date.parse(settings.now)
  const now = (): number => fixedMs ?? Date.now()
  /** Stopped at an instant, or that of the machine. */
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
  /** One port, with its own gateway, resources, faults and stream of random numbers. */
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

/** The properties of the service that belong to one port. */
interface ServicePort {
  /** Whether the port has the resource; 404 for others. */
  readonly serves: (route: Route) => boolean
  /** Answers single requests of a V3 batch by a fault; undefined: none strikes. */
  readonly disturb: (method: string, path: string) => Reply | undefined
}

/** Creates the data service over a school, for each port that it is offered on. Errors: `QueryError` for queries that cannot be read. */
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
      // The learner domains at V1 and V2 have the batch of V3; that of the attendance domain is the legacy one.
      const isBatch = route?.resource.join('/').toLowerCase() === '$batch' && !isLegacy(route)
      if (!isBatch) return single(request)
      // Whether V3 has one was announced, and never shown (service-facts 3).
      if (!batch) return notFound
      if (request.method !== 'POST') return methodNotAllowed('POST')
      return answerOperations({ service: single, attempt: school.attempt, disturb }, { ...request, route })
    }
  }
}

/** The sets that one root serves, in a model of its own for `$metadata` and the service document. */
function modelWith(isServed: (set: string) => boolean): ServiceModel {
  const { container } = serviceModel
  const entitySets = container.entitySets.filter(({ name }) => isServed(name))
  return { ...serviceModel, container: { ...container, entitySets } }
}

const isAttendance = (set: string): boolean =>
  serviceSets.some(({ name, securityDomain }) => name === set && securityDomain === 'Attendance')
const isLookup = (set: string): boolean => set === 'AttendanceLookups' || lookupSets[set] !== undefined

/** The model of each kind of root: the sets that its service document lists can be read below it. */
const rootModels = {
  Learner: modelWith((set) => !isAttendance(set)),
  Attendance: modelWith(isAttendance),
  LearnerLookup: modelWith((set) => isLookup(set) && !isAttendance(set)),
  AttendanceLookup: modelWith((set) => isLookup(set) && isAttendance(set)),
  // V2 has the registration only (service.md 9).
  LearnerV2: modelWith((set) => set === 'LearnerRegistrations'),
  Legacy: attendanceV2Model,
}

const notAcceptable = odataError(406, 'NotAcceptable', '$metadata is offered as application/xml.')

/** Answers `GET <root>/` and `GET <root>/$metadata`; undefined for every other path. */
function answerMetadata(request: RoutedRequest): Reply | undefined {
  const { route, origin } = request
  const [name, ...rest] = route.resource
  const asksMetadata = name?.toLowerCase() === '$metadata'
  if (rest.length > 0 || (name !== undefined && !asksMetadata)) return undefined
  if (request.method !== 'GET') return methodNotAllowed('GET')
  const model = rootModels[modelOf(route)]
  const format = formatOf(request)
  if (asksMetadata) {
    // Accept is disregarded (RFC 9110 12.5.1): clients send that of data with every request.
    if (format !== undefined && !/^(application\/)?xml$/i.test(format)) return notAcceptable
    const headers = { 'Content-Type': 'application/xml', 'OData-Version': '4.0' }
    return { status: 200, headers, body: writeEdmx(model) }
  }
  const level = levelOf(format, request)
  const { value, ...context } = toServiceDocument(model, `${origin}${route.root}/$metadata`)
  const document = level === 'none' ? { value } : { ...context, value }
  return jsonReply(200, JSON.stringify(document), { 'Content-Type': jsonMediaType(level) })
}

/** Which model a root has. */
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
