/**
 * Who may talk to the studio. It reads files and starts processes, and every page in the user's browser can send requests
 * to a port of this machine; so nothing is answered before the request has shown where it comes from.
 *
 *   Host            one of ours: a foreign name that was made to point here (DNS rebinding) is refused
 *   Origin          absent or ours, Sec-Fetch-Site likewise: other sites cannot post, read events or embed
 *   token           needed where the studio listens to other machines; a cookie after the first visit
 *   content type    JSON for whatever has a body, which no foreign form can send; never a CORS header
 *   size and rate   limited
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie, setCookie } from "hono/cookie";
import { limits } from "../api.ts";
import { Refusal } from "./requests.ts";

/** Addresses of this machine alone. */
const loopbacks = ["127.0.0.1", "localhost", "[::1]"];

/** Whether a host is this machine and nothing else. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The `Host` headers that a studio listening at a host and port answers to. */
export function allowedHosts(host: string, port: number): ReadonlySet<string> {
  const bracketed = (name: string): string => (name.includes(":") ? `[${name}]` : name);
  const names = [...loopbacks, bracketed(host)];
  if (!isLoopback(host)) {
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    names.push(hostname().toLowerCase(), ...own.map(({ address }) => bracketed(address)));
  }
  // Browsers leave the usual port out.
  return new Set(names.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`])));
}

/** What the guard has to know. */
export interface GuardOptions {
  /** Given when the port is known. */
  readonly hosts: () => ReadonlySet<string>;
  /** Undefined on loopback, where none is needed. */
  readonly token: string | undefined;
  /** Requests at once, and per second after that, from one address. */
  readonly rate?: Rate;
}

/** A limit on requests: so many at once, and so many per second after that. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

const usualRate: Rate = { burst: 3_000, perSecond: 300 };

/** A token that cannot be guessed. */
export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/** Headers of every answer, whatever it is. */
const headers: Readonly<Record<string, string>> = {
  // Scripts and styles only from here, none inline; WebAssembly for the playground; nothing can frame, embed or be posted to.
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; " +
    "font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  // Threads in the playground need both.
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** Sets the headers of every answer, of refusals too. */
export const secured: MiddlewareHandler = async (context, next) => {
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
  if (context.req.path.startsWith("/api")) context.header("Cache-Control", "no-store");
  await next();
};

/** Refuses whatever does not come from the studio's own pages, or from a program of this user. */
export function guarded({ hosts, token, rate = usualRate }: GuardOptions): MiddlewareHandler {
  const buckets = new Buckets(rate);
  return async (context, next) => {
    checkHost(context, hosts());
    checkOrigin(context);
    if (!buckets.take(addressOf(context))) {
      context.header("Retry-After", "1");
      throw new Refusal(429, "busy", "too many requests; try again in a moment");
    }
    if (token !== undefined) {
      const redirect = checkToken(context, token);
      if (redirect) return redirect;
    }
    checkMethod(context);
    await next();
  };
}

/** Refuses bodies that are too large, also those that do not say how large they are. */
export const limitedBody: MiddlewareHandler = bodyLimit({
  maxSize: limits.bodyBytes,
  onError: () => {
    throw new Refusal(413, "usage", `the request is larger than ${limits.bodyBytes} bytes`);
  },
});

function checkHost({ req }: Context, allowed: ReadonlySet<string>): void {
  const host = req.header("host")?.toLowerCase();
  if (host !== undefined && allowed.has(host)) return;
  throw new Refusal(403, "forbidden", "this name does not belong to the studio; use the address it printed");
}

/** `Host` has been checked, so an origin of the same name is the studio's own. */
function checkOrigin({ req }: Context): void {
  const origin = req.header("origin")?.toLowerCase();
  const isOwn = origin === `http://${req.header("host")!.toLowerCase()}`;
  if (origin !== undefined && !isOwn) {
    throw new Refusal(403, "forbidden", "requests from other sites are not answered");
  }
  const site = req.header("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  // A link on another site may lead to a page, never to an answer of the API.
  const isLink = req.method === "GET" && req.header("sec-fetch-mode") === "navigate";
  if (isLink && !req.path.startsWith("/api")) return;
  throw new Refusal(403, "forbidden", "requests from other sites are not answered");
}

const cookieName = "fwm-studio";

/** The token comes once in the address, and from then on in a cookie that scripts cannot read. */
function checkToken(context: Context, token: string): Response | undefined {
  const { req } = context;
  const given = req.query("token");
  if (given !== undefined && req.method === "GET") {
    if (!isSame(given, token)) throw wrongToken();
    setCookie(context, cookieName, token, { httpOnly: true, sameSite: "Strict", path: "/" });
    const url = new URL(req.url);
    url.searchParams.delete("token");
    // "//name" would lead to another site.
    return context.redirect(`/${url.pathname.replace(/^[/\\]+/, "")}${url.search}`, 303);
  }
  const bearer = /^Bearer (.+)$/.exec(req.header("authorization") ?? "")?.[1];
  const sent = bearer ?? getCookie(context, cookieName);
  if (sent === undefined || !isSame(sent, token)) throw wrongToken();
  return undefined;
}

function wrongToken(): Refusal {
  return new Refusal(401, "forbidden", "a token is needed; open the address that the studio printed");
}

/** Takes the same time wherever the two differ. */
function isSame(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

function checkMethod({ req }: Context): void {
  if (req.method === "GET" || req.method === "HEAD") return;
  if (req.method !== "POST") throw new Refusal(405, "usage", `${req.method} is not used here`);
  const [type = ""] = (req.header("content-type") ?? "").split(";");
  if (type.trim().toLowerCase() === "application/json") return;
  throw new Refusal(415, "usage", "a request with a body is JSON: content-type: application/json");
}

function addressOf(context: Context): string {
  try {
    return getConnInfo(context).remote.address ?? "";
  } catch {
    // A request that came through no socket, as in tests.
    return "";
  }
}

/** Counts requests by address: each takes one from a bucket that fills again with time. */
export class Buckets {
  private readonly buckets = new Map<string, { left: number; at: number }>();

  constructor(
    private readonly rate: Rate,
    private readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** Takes one; false if there is none left. */
  take(key: string): boolean {
    const { burst, perSecond } = this.rate;
    const now = this.now();
    const bucket = this.buckets.get(key) ?? { left: burst, at: now };
    const left = Math.min(burst, bucket.left + perSecond * (now - bucket.at));
    this.buckets.delete(key);
    this.buckets.set(key, { left: Math.max(0, left >= 1 ? left - 1 : left), at: now });
    // Addresses that have not come for longest are full again anyway.
    if (this.buckets.size > 10_000) this.buckets.delete(this.buckets.keys().next().value!);
    return left >= 1;
  }
}
