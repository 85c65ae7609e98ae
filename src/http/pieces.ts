import type { Slices } from './slices.ts'

/** Chunks that are not joined yet. */
const MAX_CHUNKS = 256
/** From this mean size on they are not joined: that would only copy them once more. */
const LARGE_CHUNK = 4_096
/** The cost of copying a byte, as a part of decoding it. */
const COPY_COST = 1 / 4

/**
 * The bytes of a body read so far. Chunks are joined from time to time: otherwise a client that sends each byte as a chunk would
 * cost a hundred times the bytes that the limits count.
 */
export class Pieces {
  size = 0
  private blocks: Buffer[] = []
  private chunks: Buffer[] = []
  private chunksSize = 0

  add(chunk: Buffer): void {
    this.size += chunk.length
    this.chunksSize += chunk.length
    this.chunks.push(chunk)
    if (this.chunks.length < MAX_CHUNKS) return
    if (this.chunksSize >= MAX_CHUNKS * LARGE_CHUNK) this.blocks.push(...this.chunks)
    else this.blocks.push(Buffer.concat(this.chunks))
    this.chunks = []
    this.chunksSize = 0
    // Blocks of tiny chunks are small, too.
    if (this.blocks.length % MAX_CHUNKS === 0 && this.size < this.blocks.length * LARGE_CHUNK)
      this.blocks = [Buffer.concat(this.blocks)]
  }

  join(): Buffer {
    const [only, second] = this.chunks
    // Most bodies are one chunk.
    if (only !== undefined && second === undefined && this.blocks.length === 0) return only
    return Buffer.concat([...this.blocks, ...this.chunks])
  }

  /** `join` for large bodies: other requests are served between the copies. */
  async joinInSlices(slices: Slices): Promise<Buffer> {
    const all = [...this.blocks, ...this.chunks]
    const [first] = all
    if (first !== undefined && all.length === 1) return first
    const joined = Buffer.allocUnsafe(this.size)
    let at = 0
    for (const piece of all) {
      at += piece.copy(joined, at)
      if (slices.spend(piece.length * COPY_COST)) await slices.next()
    }
    return joined
  }
}
