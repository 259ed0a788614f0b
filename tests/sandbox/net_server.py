# SPDX-License-Identifier: Apache-2.0
# Servers on loopback for net_test.c: HTTP, HTTPS for api.test, one that speaks first, and one that gives back what it
# gets. Prints a line with their ports and the directory of the certificates. What HTTP servers are asked is in
# requests.log of that directory, byte by byte.
import gzip, os, socket, ssl, subprocess, sys, threading

here = sys.argv[1]
log = open(os.path.join(here, "requests.log"), "ab", buffering=0)
lock = threading.Lock()


def openssl(*args):
    subprocess.run(["openssl", *args], cwd=here, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificate(name, ca):
    with open(os.path.join(here, name + ".ext"), "w") as f:
        f.write("subjectAltName=DNS:%s,DNS:plain.test,DNS:*.wild.test\n" % name)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out",
            name + ".csr", "-subj", "/CN=" + name)
    openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-days",
            "2", "-extfile", name + ".ext", "-out", name + ".pem")


for ca in ("ca", "strange-ca"):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", ca + ".key",
            "-out", ca + ".pem", "-days", "2", "-subj", "/CN=" + ca)
certificate("api.test", "ca")
certificate("strange.test", "strange-ca")


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(head, body):
    target = head.split(b" ")[1]
    path, _, query = target.partition(b"?")
    extra, status = b"", b"200 OK"
    if path == b"/echo":
        body = head + body
        extra = b"X-Echo: " + target + b"\r\n"
    elif path == b"/chunks":  # the head, one byte in each chunk
        return (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + b"".join(chunk(head[i:i + 1]) for i in range(len(head))) + b"0\r\nX-Trailer: " + head[-40:-4].split(b"\r\n")[-1]
                + b"\r\n\r\n"), True
    elif path == b"/end":  # the head until the connection closes
        return b"HTTP/1.0 200 OK\r\n\r\n" + head, False
    elif path == b"/redirect":
        status, extra, body = b"302 Found", b"Location: http://plain.test/echo?was=" + query + b"\r\n", b""
    elif path == b"/gzip":
        extra, body = b"Content-Encoding: gzip\r\n", gzip.compress(head)
    elif path == b"/upload":
        body = b"%d bytes" % len(body)
    elif path == b"/upgrade":
        return b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw", False
    else:
        body = b"hello\n"
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, extra, len(body), body), True


def read_chunks(f):
    body = b""
    while True:
        n = int(f.readline().split(b";")[0], 16)
        body += f.read(n)
        f.readline()
        if n == 0:
            return body


def http(s):
    f = s.makefile("rb")
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = f.readline()
            if not line:
                return
            head += line
        lower = head.lower()
        body = b""
        if b"transfer-encoding: chunked" in lower:
            body = read_chunks(f)
        elif b"content-length:" in lower:
            body = f.read(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
        with lock:
            log.write(head + body + b"\n--\n")
        out, more = answer(head, body)
        s.sendall(out)
        if not more or b"connection: close" in lower:
            return


def first(s):
    s.sendall(b"220 I speak first\r\n")
    s.sendall(b"you said " + s.recv(100))


def echo(s):
    data = b""
    while True:
        piece = s.recv(65536)
        if not piece:
            break
        data += piece
    s.sendall(b"got %d" % len(data))


def accept(listener, context, work):
    def one(s):
        try:
            if context:
                s = context.wrap_socket(s, server_side=True)
            work(s)
        except (OSError, ValueError):
            pass
        finally:
            s.close()

    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


def serve(work, name=None):
    context = None
    if name:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(here, name + ".pem"), os.path.join(here, name + ".key"))
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, context, work), daemon=True).start()
    return listener.getsockname()[1]


print(serve(http), serve(http, "api.test"), serve(http, "strange.test"), serve(first), serve(echo), flush=True)
sys.stdin.read()  # until whoever started this is gone
