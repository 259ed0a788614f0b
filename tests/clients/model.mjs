// SPDX-License-Identifier: Apache-2.0
// A model that follows a script, on loopback, in the four wire formats that coding agents speak: Anthropic Messages, OpenAI
// Chat Completions and Responses, and Gemini. It makes the calls of the script one after the other with tools of the server
// "stead" and keeps what comes back as the result of each. The next call follows from the request: the number of results in
// it. A tool that a client has put aside (Claude Code does so) is asked for by name with the client's own ToolSearch.
import { createServer } from "node:http";

const sse = (events) => events.map((e) => `${e.type ? `event: ${e.type}\n` : ""}data: ${JSON.stringify(e)}\n\n`).join("");
const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

// A format: the tools that a request offers, the results in it, and the answers {tool, args, id} or {say}.
const anthropic = {
  path: /\/v1\/messages(\?|$)/,
  tools: (body) => (body.tools ?? []).map((t) => ({ name: t.name })),
  results: (body) =>
    body.messages
      .flatMap((m) => (Array.isArray(m.content) ? m.content : []))
      .filter((part) => part.type === "tool_result" && part.tool_use_id.startsWith("call_"))
      .map((part) => textOf(part.content)),
  answer: (body, { tool, args, id, say }) => {
    const block = tool ? { type: "tool_use", id, name: tool.name, input: {} } : { type: "text", text: "" };
    const delta = tool
      ? { type: "input_json_delta", partial_json: JSON.stringify(args) }
      : { type: "text_delta", text: say };
    const message = { id: "msg_1", type: "message", role: "assistant", model: body.model, content: [] };
    const usage = { input_tokens: 1, output_tokens: 1 };
    if (!body.stream)
      return JSON.stringify({ ...message, content: [{ type: "text", text: say }], stop_reason: "end_turn", usage });
    return sse([
      { type: "message_start", message: { ...message, stop_reason: null, usage } },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: tool ? "tool_use" : "end_turn" }, usage },
      { type: "message_stop" },
    ]);
  },
};

const responses = {
  path: /\/responses(\?|$)/,
  tools: (body) =>
    (body.tools ?? []).flatMap((t) =>
      t.type === "namespace" ? t.tools.map((inner) => ({ name: inner.name, namespace: t.name })) : [{ name: t.name ?? "" }]),
  results: (body) =>
    body.input.filter((item) => item.type === "function_call_output").map((item) => textOf(item.output)),
  answer: (body, { tool, args, id, say }) => {
    const item = tool
      ? { type: "function_call", id: `fc_${id}`, call_id: id, ...tool, arguments: JSON.stringify(args) }
      : { type: "message", id: "m_1", role: "assistant", content: [{ type: "output_text", text: say, annotations: [] }] };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: null, output_tokens_details: null };
    const response = { id: "resp_1", object: "response", status: "completed", output: [item], usage };
    return sse([
      { type: "response.created", response: { ...response, output: [], status: "in_progress" } },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response },
    ]);
  },
};

const chat = {
  path: /\/chat\/completions(\?|$)/,
  tools: (body) => (body.tools ?? []).map((t) => ({ name: t.function.name })),
  results: (body) => body.messages.filter((m) => m.role === "tool").map((m) => textOf(m.content)),
  answer: (body, { tool, args, id, say }) => {
    const call = tool && { index: 0, id, type: "function", function: { name: tool.name, arguments: JSON.stringify(args) } };
    const chunk = (delta, finish_reason = null) => ({
      id: "c_1", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }],
    });
    return sse([
      chunk(tool ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content: say }),
      { ...chunk({}, tool ? "tool_calls" : "stop"), usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
    ]) + "data: [DONE]\n\n";
  },
};

const gemini = {
  path: /:(streamGenerateContent|generateContent)(\?|$)/,
  tools: (body) => (body.tools ?? []).flatMap((t) => t.functionDeclarations ?? []).map((t) => ({ name: t.name })),
  results: (body) =>
    body.contents
      .flatMap((c) => c.parts ?? [])
      .filter((part) => part.functionResponse)
      .map(({ functionResponse: { response } }) => response.output ?? response.error ?? JSON.stringify(response)),
  answer: (body, { tool, args, say }, url) => {
    const part = tool ? { functionCall: { name: tool.name, args } } : { text: say };
    const reply = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    return url.includes("stream") ? sse([reply]) : JSON.stringify(reply);
  },
};

const formats = [anthropic, responses, chat, gemini];

// Starts a model that makes the calls [tool, arguments] of `script`. Gives {url, results, offered, searches, close}.
export async function startModel(script) {
  const model = { results: [], offered: [], searches: [] };

  const answer = (format, body, url) => {
    const results = format.results(body);
    // "stead" is part of every name that a client gives the server's tools, or of their namespace.
    const offered = format.tools(body).filter((t) => `${t.namespace ?? ""}${t.name}`.includes("stead"));
    const search = format.tools(body).find((t) => t.name === "ToolSearch");
    if (offered.length === 0) return format.answer(body, { say: "A title" }, url); // an errand of the client's own
    model.offered = offered;
    if (results.length > model.results.length) model.results = results;
    const step = script[results.length];
    if (!step) return format.answer(body, { say: "The script has ended." }, url);
    const tool = offered.find((t) => new RegExp(`(^|[^a-z])${step[0]}$`).test(t.name));
    if (tool) return format.answer(body, { tool, args: step[1], id: `call_${results.length}` }, url);
    if (!search || model.searches.includes(step[0])) return format.answer(body, { say: `${step[0]} is not offered` }, url);
    model.searches.push(step[0]);
    return format.answer(body, { tool: search, args: { query: `+stead ${step[0]}` }, id: `search_${results.length}` }, url);
  };

  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const format = request.method === "POST" && formats.find((f) => f.path.test(request.url));
      if (!format) {
        response.writeHead(404, { "content-type": "application/json" });
        response.end("{}");
        return;
      }
      const reply = answer(format, JSON.parse(Buffer.concat(parts)), request.url);
      response.writeHead(200, { "content-type": reply.startsWith("{") ? "application/json" : "text/event-stream" });
      response.end(reply);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  model.url = `http://127.0.0.1:${server.address().port}`;
  model.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return model;
}
