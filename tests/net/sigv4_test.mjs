// SPDX-License-Identifier: Apache-2.0
// Our signer compared with the AWS SDK's for JavaScript, over made-up requests. Every header and query must be the
// same to the byte.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

const load = createRequire(process.env.PEERS + "/package.json");
const { SignatureV4 } = load("@smithy/signature-v4");
const { HttpRequest } = load("@smithy/protocol-http");
const { Sha256 } = load("@aws-crypto/sha256-js");

const count = 1000;
const text = (hex) => Buffer.from(hex, "hex").toString("utf8");
const escape = (s) =>
  encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

// A query as the SDK takes it: a name that comes twice has a list.
function grouped(params) {
  const query = {};
  for (const { name, value } of params) (query[text(name)] ??= []).push(text(value));
  return query;
}

// The SDK's query in the order and form in which it was signed.
const flat = (query) =>
  Object.entries(query)
    .flatMap(([name, value]) => [value].flat().map((v) => [escape(name), escape(v)]))
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map((pair) => pair.join("="))
    .join("&");

function request(c, payload) {
  const headers = { host: "bucket.host:8080", "x-amz-content-sha256": payload };
  for (const { name, value } of c.headers) headers[text(name)] = text(value);
  const path = "/" + text(c.key).split("/").map(escape).join("/");
  return new HttpRequest({ method: c.method, protocol: "http:", hostname: "bucket.host", port: 8080, path, headers, query: grouped(c.params) });
}

async function compare(c) {
  const signer = new SignatureV4({
    service: "s3",
    region: text(c.region),
    sha256: Sha256,
    uriEscapePath: false,
    credentials: { accessKeyId: "AK:ID", secretAccessKey: text(c.secret) || undefined, sessionToken: text(c.token) || undefined },
  });
  const signingDate = new Date(c.when * 1000);
  const signed = await signer.sign(request(c, text(c.payload)), { signingDate });
  for (const { name, value } of c.signed) assert.equal(text(value), signed.headers[text(name)], text(name));
  assert.equal(text(c.query), flat(grouped(c.params)), "query");
}

const lines = execFileSync(process.env.STEAD, [String(count), "20260728"], { encoding: "utf8", maxBuffer: 1 << 28 }).trim().split("\n");
let bad = 0, compared = 0;
for (const line of lines) {
  const c = JSON.parse(line);
  if (!c.secret) continue; // the SDK takes no empty secret
  compared++;
  try {
    await compare(c);
  } catch (e) {
    if (bad++ < 3) console.log(`# ${e.message.replaceAll("\n", "\n# ")}\n# ${line}`);
  }
}
const ok = bad === 0 && compared > count * 0.9;
console.log(`${ok ? "ok" : "not ok"} 1 - ${compared} requests are signed as the AWS SDK signs them (${bad} are not)\n1..1`);
process.exit(ok ? 0 : 1);
