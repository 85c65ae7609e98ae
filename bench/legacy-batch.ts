/** A batch in the form in which a V2 client sends it, with the `Content-Type` that names its boundary. */
export interface LegacyBatch {
  readonly bytes: Buffer
  readonly contentType: string
}

const HEAD = [
  'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
  'Content-Type: application/json;odata.metadata=minimal',
  'Prefer: return=representation',
  'Accept: application/json;odata.metadata=minimal',
  'Accept-Charset: UTF-8',
].join('\r\n')

/** Returns a guid that depends only on the two numbers. Different numbers give different guids. */
export function guid(kind: number, index: number): string {
  const spread = hex(Math.imul(index + 1, 0x9e3779b1) >>> 0)
  const plain = hex(index)
  const version = `4${kind.toString(16).padStart(3, '0')}`
  return `${spread}-${plain.slice(0, 4)}-${version}-8${plain.slice(5)}-${plain.slice(4)}${spread}`
}

function hex(number: number): string {
  return number.toString(16).padStart(8, '0')
}

/** Returns the JSON of a V2 record (service.md 4.2). One record in four has a comment, and one in ten has minutes. */
export function flatRecordJson(index: number): string {
  const late = index % 10 === 0
  const comment = index % 4 === 0 ? '"Comment":"Arrived with a note from home",' : ''
  return (
    '{"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord",' +
    `"Present":${index % 16 !== 0},"Absent":${index % 16 === 0},${comment}` +
    `"Learner":"${guid(1, index)}","AttendableEvent":"${guid(2, index % 2)}",` +
    `"SchoolAttendanceCode":"${guid(3, index % 7)}","MinutesLate":${late ? 12 : 'null'}}`
  )
}

/**
 * Creates a batch of `count` records in the form of service.md 4.2: CRLF, one changeset, about 600 bytes for each record. The guids of
 * batch and changeset depend on `id`, so that batches with different ids have different bytes. `first` is the index of the first learner.
 */
export function legacyBatch(count: number, id: number, first = 0): LegacyBatch {
  const batch = `batch_${guid(8, id)}`
  const changeset = `changeset_${guid(9, id)}`
  const parts: string[] = []
  for (let index = 0; index < count; index += 1) {
    parts.push(
      `--${changeset}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n` +
        `Content-ID: ${index + 1}\r\n\r\n${HEAD}\r\n\r\n${flatRecordJson(first + index)}\r\n`,
    )
  }
  const body =
    `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changeset}\r\n\r\n` +
    `${parts.join('')}--${changeset}--\r\n--${batch}--\r\n`
  return { bytes: Buffer.from(body), contentType: `multipart/mixed; boundary=${batch}` }
}
