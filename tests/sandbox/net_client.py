# SPDX-License-Identifier: Apache-2.0
# What net_test.c tries from inside of a sandbox. Each function is one attempt; it prints what it got.
import os, socket, ssl, struct, sys


def dns(name, kind=1, where=("127.0.0.53", 53)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    q += b"".join(bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0" + struct.pack(">HH", kind, 1)
    s.sendto(q, where)
    a = s.recv(512)
    code, count = a[3] & 15, struct.unpack(">H", a[6:8])[0]
    return code, socket.inet_ntoa(a[-4:]) if count else None


def talk(where, data, shut=False):
    s = socket.create_connection(where, 10)
    s.sendall(data)
    if shut:
        s.shutdown(socket.SHUT_WR)
    out = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            out += piece
    except OSError as e:
        out += ("[%s]" % type(e).__name__).encode()
    return out.decode("latin1")


def attempt(f, *args):
    try:
        return f(*args)
    except OSError as e:
        return "%s" % type(e).__name__


def raw(*lines, host="plain.test"):
    print(attempt(talk, (host, 80), "\r\n".join(lines).encode("latin1")))


def ask_names():
    print(dns("plain.test"), dns("PLAIN.test"), dns("plain.test", 28), dns("other.test"), dns("plain.test.evil.test"),
          dns("notplain.test"), dns("data-to-leak.plain.test"))


def direct(port):
    print(attempt(talk, ("127.0.0.1", int(port)), b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n"))
    for where in ("192.0.2.1", "169.254.169.254", "10.0.0.1"):
        print(attempt(talk, (where, 80), b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n"))
    print(attempt(talk, (dns("plain.test")[1], int(port)), b""))
    print(attempt(talk, ("127.77.0.9", 80), b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n"))


def families():
    def v6():
        s = socket.socket(socket.AF_INET6)
        s.settimeout(5)
        s.connect(("2001:db8::1", 80))
        return "open"

    def udp():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b"x", ("192.0.2.1", 53))
        return "open"

    def quic():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(5)
        s.connect((dns("plain.test")[1], 443))
        s.send(b"x")
        return "open %d" % len(s.recv(10))

    def packets():
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        return "open"

    def link():
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        return "open"

    for f in (v6, udp, quic, packets, link):
        print(f.__name__, attempt(f))


def server_name(name, host="plain.test"):
    c = ssl.create_default_context()
    c.check_hostname = False
    c.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, 443), 10) as s, c.wrap_socket(s, server_hostname=name or None) as t:
            t.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host.encode())
            print("open", t.recv(100))
    except OSError as e:
        print("refused", type(e).__name__)


def hosts():
    get = "GET /%s HTTP/1.1"
    raw(get % "other", "Host: other.test", "Connection: close", "", "")
    raw(get % "two", "Host: plain.test", "Host: other.test", "", "")
    raw(get % "none", "Connection: close", "", "")
    raw(get % "port", "Host: plain.test:81", "", "")
    raw(get % "fold", "Host: plain.test", "X-A: b", " Host: other.test", "", "")
    raw(get % "blank", "Host : plain.test", "", "")
    raw(get % "nul", "Host: other.test\0.plain.test", "", "")
    raw("GET http://other.test/absolute HTTP/1.1", "Host: plain.test", "", "")
    raw("CONNECT other.test:443 HTTP/1.1", "Host: plain.test", "", "")
    raw("GET /bare HTTP/1.1\nHost: plain.test\n", "", "")
    raw(get % "old", "", "").__class__
    raw("get /\x01ctl HTTP/1.1", "Host: plain.test", "", "")


def smuggle():
    hidden = "GET /hidden HTTP/1.1\r\nHost: other.test\r\n\r\n"
    raw("POST /a HTTP/1.1", "Host: plain.test", "Content-Length: 5", "Transfer-Encoding: chunked", "", "0\r\n\r\n" + hidden)
    raw("POST /b HTTP/1.1", "Host: plain.test", "Content-Length: 0", "Content-Length: 50", "", hidden)
    raw("POST /c HTTP/1.1", "Host: plain.test", "Transfer-Encoding: chunked, identity", "", "0\r\n\r\n" + hidden)
    raw("POST /d HTTP/1.1", "Host: plain.test", "Transfer-Encoding: xchunked", "", "0\r\n\r\n" + hidden)
    raw("POST /e HTTP/1.1", "Host: plain.test", "Content-Length: +5", "", hidden)
    raw("POST /f HTTP/1.1", "Host: plain.test", "Transfer-Encoding: chunked", "", "5;a=\n\r\nhello\r\n0\r\n\r\n" + hidden)
    raw("GET /g HTTP/1.1", "Host: plain.test", "Upgrade: h2c", "Connection: Upgrade", "", hidden)
    raw("GET /h HTTP/1.1", "Host: plain.test", "", hidden)  # pipelined


def pipelined():
    raw("GET /one HTTP/1.1", "Host: plain.test", "", "GET /two HTTP/1.1", "Host: plain.test", "Connection: close", "", "")


def huge():
    raw("GET / HTTP/1.1", "Host: plain.test", "X: " + "x" * 100000, "", "")


def slow():
    s = socket.create_connection(("plain.test", 80), 20)
    s.sendall(b"GET / HTTP/1.1\r\nHost: pl")
    print("ended", attempt(s.recv, 100))
    s = socket.create_connection(("plain.test", 443), 20)
    s.sendall(b"\x16\x03\x01")
    print("ended", attempt(s.recv, 100))


def half_closed(port):
    print(talk(("plain.test", int(port)), b"x" * 300000, True))


def speaks_first(port):
    s = socket.create_connection(("plain.test", int(port)), 10)
    print(s.recv(100), end=" ")
    s.sendall(b"hi")
    print(s.recv(100))


def many(count):
    held = [socket.create_connection(("plain.test", 80), 10) for _ in range(int(count))]
    if os.fork() == 0:
        os.setsid()
        os.close(1)
        os.close(2)
        held[0].recv(1)
        os._exit(0)
    print(len(held))


def look_around():
    out = []
    for root in ("/proc/self/environ", "/proc/1/environ", "/etc/stead-ca.crt"):
        try:
            out.append(open(root, "rb").read().decode("latin1"))
        except OSError as e:
            out.append(str(e))
    for at, dirs, files in os.walk("/workspace"):
        out += [open(os.path.join(at, f), "rb").read().decode("latin1") for f in files]
    for at in ("/proc/self/maps", "/proc/self/mem"):
        out.append(attempt(lambda: open(at, "rb").read(100000).decode("latin1")))
    print(os.environ.get("API_KEY"), "\n".join(out))
    open("copy.txt", "w").write(repr(dict(os.environ)))


globals()[sys.argv[1]](*sys.argv[2:])
