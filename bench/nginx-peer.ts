import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** The installed nginx, which runs as a proxy. */
export interface NginxPeer {
  readonly port: number
  /** Returns the processor time of the nginx worker so far, in ms (Linux). */
  cpuMs(): number
  stop(): void
}

/** Starts nginx with one worker on `core` as a proxy for an upstream. Returns `undefined` if nginx is not installed. */
export async function startNginx(
  upstreamPort: number,
  port: number,
  core: number,
): Promise<NginxPeer | undefined> {
  if (spawnSync('nginx', ['-v']).status !== 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-nginx-'))
  const mask = (1 << core).toString(2)
  const config = `worker_processes 1; worker_cpu_affinity ${mask}; daemon off; pid ${folder}/pid; error_log ${folder}/error crit;
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s; keepalive_requests 100000000;
  upstream service { server 127.0.0.1:${upstreamPort}; keepalive 32; keepalive_requests 100000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const master = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
  await untilListening(port, master)
  const worker = execFileSync('ps', ['-o', 'pid=', '--ppid', String(master.pid)], { encoding: 'utf8' }).trim()
  return {
    port,
    cpuMs: () => {
      // After the name in brackets, proc(5) has utime and stime, in ticks of 10 ms.
      const [, fields = ''] = readFileSync(`/proc/${worker}/stat`, 'utf8').split(') ')
      const [utime = 0, stime = 0] = fields.split(' ').slice(11, 13).map(Number)
      return (utime + stime) * 10
    },
    stop: () => {
      master.kill('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(port: number, master: ChildProcess): Promise<void> {
  for (;;) {
    if (master.exitCode !== null) throw new Error(`nginx ended with ${master.exitCode}`)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => {
        socket.destroy()
        resolve(true)
      })
      socket.once('error', () => resolve(false))
    })
    if (isOpen) return
    await delay(20)
  }
}
