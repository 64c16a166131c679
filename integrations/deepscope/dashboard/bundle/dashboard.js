"use strict";
(() => {
  // ../../main/vscode-extension/node_modules/preact/dist/preact.module.js
  var n;
  var l;
  var u;
  var t;
  var i;
  var r;
  var o;
  var e;
  var f;
  var c;
  var a;
  var s;
  var h;
  var p;
  var v;
  var y;
  var d = {};
  var w = [];
  var _ = /acit|ex(?:s|g|n|p|$)|rph|grid|ows|mnc|ntw|ine[ch]|zoo|^ord|itera/i;
  var g = Array.isArray;
  function m(n2, l3) {
    for (var u4 in l3) n2[u4] = l3[u4];
    return n2;
  }
  function b(n2) {
    n2 && n2.parentNode && n2.parentNode.removeChild(n2);
  }
  function k(l3, u4, t3) {
    var i3, r3, o3, e3 = {};
    for (o3 in u4) "key" == o3 ? i3 = u4[o3] : "ref" == o3 ? r3 = u4[o3] : e3[o3] = u4[o3];
    if (arguments.length > 2 && (e3.children = arguments.length > 3 ? n.call(arguments, 2) : t3), "function" == typeof l3 && null != l3.defaultProps) for (o3 in l3.defaultProps) void 0 === e3[o3] && (e3[o3] = l3.defaultProps[o3]);
    return x(l3, e3, i3, r3, null);
  }
  function x(n2, t3, i3, r3, o3) {
    var e3 = { type: n2, props: t3, key: i3, ref: r3, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: void 0, __v: null == o3 ? ++u : o3, __i: -1, __u: 0 };
    return null == o3 && null != l.vnode && l.vnode(e3), e3;
  }
  function S(n2) {
    return n2.children;
  }
  function C(n2, l3) {
    this.props = n2, this.context = l3;
  }
  function $(n2, l3) {
    if (null == l3) return n2.__ ? $(n2.__, n2.__i + 1) : null;
    for (var u4; l3 < n2.__k.length; l3++) if (null != (u4 = n2.__k[l3]) && null != u4.__e) return u4.__e;
    return "function" == typeof n2.type ? $(n2) : null;
  }
  function I(n2) {
    if (n2.__P && n2.__d) {
      var u4 = n2.__v, t3 = u4.__e, i3 = [], r3 = [], o3 = m({}, u4);
      o3.__v = u4.__v + 1, l.vnode && l.vnode(o3), q(n2.__P, o3, u4, n2.__n, n2.__P.namespaceURI, 32 & u4.__u ? [t3] : null, i3, null == t3 ? $(u4) : t3, !!(32 & u4.__u), r3), o3.__v = u4.__v, o3.__.__k[o3.__i] = o3, D(i3, o3, r3), u4.__e = u4.__ = null, o3.__e != t3 && P(o3);
    }
  }
  function P(n2) {
    if (null != (n2 = n2.__) && null != n2.__c) return n2.__e = n2.__c.base = null, n2.__k.some(function(l3) {
      if (null != l3 && null != l3.__e) return n2.__e = n2.__c.base = l3.__e;
    }), P(n2);
  }
  function A(n2) {
    (!n2.__d && (n2.__d = true) && i.push(n2) && !H.__r++ || r != l.debounceRendering) && ((r = l.debounceRendering) || o)(H);
  }
  function H() {
    try {
      for (var n2, l3 = 1; i.length; ) i.length > l3 && i.sort(e), n2 = i.shift(), l3 = i.length, I(n2);
    } finally {
      i.length = H.__r = 0;
    }
  }
  function L(n2, l3, u4, t3, i3, r3, o3, e3, f4, c3, a3) {
    var s3, h3, p3, v3, y3, _3, g2 = t3 && t3.__k || w, m3 = l3.length;
    for (f4 = T(u4, l3, g2, f4, m3), s3 = 0; s3 < m3; s3++) null != (p3 = u4.__k[s3]) && (h3 = -1 != p3.__i && g2[p3.__i] || d, p3.__i = s3, _3 = q(n2, p3, h3, i3, r3, o3, e3, f4, c3, a3), v3 = p3.__e, p3.ref && h3.ref != p3.ref && (h3.ref && J(h3.ref, null, p3), a3.push(p3.ref, p3.__c || v3, p3)), null == y3 && null != v3 && (y3 = v3), 4 & p3.__u ? (f4 = j(p3, f4, n2), h3.__e && (h3.__e = null)) : "function" == typeof p3.type && void 0 !== _3 ? f4 = _3 : v3 && (f4 = v3.nextSibling), p3.__u &= -7);
    return u4.__e = y3, f4;
  }
  function T(n2, l3, u4, t3, i3) {
    var r3, o3, e3, f4, c3, a3 = u4.length, s3 = a3, h3 = 0;
    for (n2.__k = new Array(i3), r3 = 0; r3 < i3; r3++) null != (o3 = l3[r3]) && "boolean" != typeof o3 && "function" != typeof o3 ? ("string" == typeof o3 || "number" == typeof o3 || "bigint" == typeof o3 || o3.constructor == String ? o3 = n2.__k[r3] = x(null, o3, null, null, null) : g(o3) ? o3 = n2.__k[r3] = x(S, { children: o3 }, null, null, null) : void 0 === o3.constructor && o3.__b > 0 ? o3 = n2.__k[r3] = x(o3.type, o3.props, o3.key, o3.ref ? o3.ref : null, o3.__v) : n2.__k[r3] = o3, f4 = r3 + h3, o3.__ = n2, o3.__b = n2.__b + 1, e3 = null, -1 != (c3 = o3.__i = O(o3, u4, f4, s3)) && (s3--, (e3 = u4[c3]) && (e3.__u |= 2)), null == e3 || null == e3.__v ? (-1 == c3 && (i3 > a3 ? h3-- : i3 < a3 && h3++), "function" != typeof o3.type && (o3.__u |= 4)) : c3 != f4 && (c3 == f4 - 1 ? h3-- : c3 == f4 + 1 ? h3++ : (c3 > f4 ? h3-- : h3++, o3.__u |= 4))) : n2.__k[r3] = null;
    if (s3) for (r3 = 0; r3 < a3; r3++) null != (e3 = u4[r3]) && 0 == (2 & e3.__u) && (e3.__e == t3 && (t3 = $(e3)), K(e3, e3));
    return t3;
  }
  function j(n2, l3, u4) {
    var t3, i3;
    if ("function" == typeof n2.type) {
      for (t3 = n2.__k, i3 = 0; t3 && i3 < t3.length; i3++) t3[i3] && (t3[i3].__ = n2, l3 = j(t3[i3], l3, u4));
      return l3;
    }
    n2.__e != l3 && (l3 && n2.type && !l3.parentNode && (l3 = $(n2)), l3 = u4.insertBefore(n2.__e, l3 || null));
    do {
      l3 = l3 && l3.nextSibling;
    } while (null != l3 && 8 == l3.nodeType);
    return l3;
  }
  function O(n2, l3, u4, t3) {
    var i3, r3, o3, e3 = n2.key, f4 = n2.type, c3 = l3[u4], a3 = null != c3 && 0 == (2 & c3.__u);
    if (null === c3 && null == e3 || a3 && e3 == c3.key && f4 == c3.type) return u4;
    if (t3 > (a3 ? 1 : 0)) {
      for (i3 = u4 - 1, r3 = u4 + 1; i3 >= 0 || r3 < l3.length; ) if (null != (c3 = l3[o3 = i3 >= 0 ? i3-- : r3++]) && 0 == (2 & c3.__u) && e3 == c3.key && f4 == c3.type) return o3;
    }
    return -1;
  }
  function z(n2, l3, u4) {
    "-" == l3[0] ? n2.setProperty(l3, null == u4 ? "" : u4) : n2[l3] = null == u4 ? "" : "number" != typeof u4 || _.test(l3) ? u4 : u4 + "px";
  }
  function N(n2, l3, u4, t3, i3) {
    var r3, o3;
    n: if ("style" == l3) if ("string" == typeof u4) n2.style.cssText = u4;
    else {
      if ("string" == typeof t3 && (n2.style.cssText = t3 = ""), t3) for (l3 in t3) u4 && l3 in u4 || z(n2.style, l3, "");
      if (u4) for (l3 in u4) t3 && u4[l3] == t3[l3] || z(n2.style, l3, u4[l3]);
    }
    else if ("o" == l3[0] && "n" == l3[1]) r3 = l3 != (l3 = l3.replace(s, "$1")), o3 = l3.toLowerCase(), l3 = o3 in n2 || "onFocusOut" == l3 || "onFocusIn" == l3 ? o3.slice(2) : l3.slice(2), n2.l || (n2.l = {}), n2.l[l3 + r3] = u4, u4 ? t3 ? u4[a] = t3[a] : (u4[a] = h, n2.addEventListener(l3, r3 ? v : p, r3)) : n2.removeEventListener(l3, r3 ? v : p, r3);
    else {
      if ("http://www.w3.org/2000/svg" == i3) l3 = l3.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
      else if ("width" != l3 && "height" != l3 && "href" != l3 && "list" != l3 && "form" != l3 && "tabIndex" != l3 && "download" != l3 && "rowSpan" != l3 && "colSpan" != l3 && "role" != l3 && "popover" != l3 && l3 in n2) try {
        n2[l3] = null == u4 ? "" : u4;
        break n;
      } catch (n3) {
      }
      "function" == typeof u4 || (null == u4 || false === u4 && "-" != l3[4] ? n2.removeAttribute(l3) : n2.setAttribute(l3, "popover" == l3 && 1 == u4 ? "" : u4));
    }
  }
  function V(n2) {
    return function(u4) {
      if (this.l) {
        var t3 = this.l[u4.type + n2];
        if (null == u4[c]) u4[c] = h++;
        else if (u4[c] < t3[a]) return;
        return t3(l.event ? l.event(u4) : u4);
      }
    };
  }
  function q(n2, u4, t3, i3, r3, o3, e3, f4, c3, a3) {
    var s3, h3, p3, v3, y3, d3, _3, k3, x3, M, I2, P2, A3, H2, T3, j3, F = u4.type;
    if (void 0 !== u4.constructor) return null;
    128 & t3.__u && (c3 = !!(32 & t3.__u), o3 = [f4 = u4.__e = t3.__e]), (s3 = l.__b) && s3(u4);
    n: if ("function" == typeof F) {
      h3 = e3.length;
      try {
        if (x3 = u4.props, M = F.prototype && F.prototype.render, I2 = (s3 = F.contextType) && i3[s3.__c], P2 = s3 ? I2 ? I2.props.value : s3.__ : i3, t3.__c ? k3 = (p3 = u4.__c = t3.__c).__ = p3.__E : (M ? u4.__c = p3 = new F(x3, P2) : (u4.__c = p3 = new C(x3, P2), p3.constructor = F, p3.render = Q), I2 && I2.sub(p3), p3.state || (p3.state = {}), p3.__n = i3, v3 = p3.__d = true, p3.__h = [], p3._sb = []), M && null == p3.__s && (p3.__s = p3.state), M && null != F.getDerivedStateFromProps && (p3.__s == p3.state && (p3.__s = m({}, p3.__s)), m(p3.__s, F.getDerivedStateFromProps(x3, p3.__s))), y3 = p3.props, d3 = p3.state, p3.__v = u4, v3) M && null == F.getDerivedStateFromProps && null != p3.componentWillMount && p3.componentWillMount(), M && null != p3.componentDidMount && p3.__h.push(p3.componentDidMount);
        else {
          if (M && null == F.getDerivedStateFromProps && x3 !== y3 && null != p3.componentWillReceiveProps && p3.componentWillReceiveProps(x3, P2), u4.__v == t3.__v || !p3.__e && null != p3.shouldComponentUpdate && false === p3.shouldComponentUpdate(x3, p3.__s, P2)) {
            u4.__v != t3.__v && (p3.props = x3, p3.state = p3.__s, p3.__d = false), u4.__e = t3.__e, u4.__k = t3.__k, u4.__k.some(function(n3) {
              n3 && (n3.__ = u4);
            }), w.push.apply(p3.__h, p3._sb), p3._sb = [], p3.__h.length && e3.push(p3), f4 = $(t3);
            break n;
          }
          null != p3.componentWillUpdate && p3.componentWillUpdate(x3, p3.__s, P2), M && null != p3.componentDidUpdate && p3.__h.push(function() {
            p3.componentDidUpdate(y3, d3, _3);
          });
        }
        if (p3.context = P2, p3.props = x3, p3.__P = n2, p3.__e = false, A3 = l.__r, H2 = 0, M) p3.state = p3.__s, p3.__d = false, A3 && A3(u4), s3 = p3.render(p3.props, p3.state, p3.context), w.push.apply(p3.__h, p3._sb), p3._sb = [];
        else do {
          p3.__d = false, A3 && A3(u4), s3 = p3.render(p3.props, p3.state, p3.context), p3.state = p3.__s;
        } while (p3.__d && ++H2 < 25);
        p3.state = p3.__s, null != p3.getChildContext && (i3 = m(m({}, i3), p3.getChildContext())), M && !v3 && null != p3.getSnapshotBeforeUpdate && (_3 = p3.getSnapshotBeforeUpdate(y3, d3)), T3 = null != s3 && s3.type === S && null == s3.key ? E(s3.props.children) : s3, f4 = L(n2, g(T3) ? T3 : [T3], u4, t3, i3, r3, o3, e3, f4, c3, a3), p3.base = u4.__e, u4.__u &= -161, p3.__h.length && e3.push(p3), k3 && (p3.__E = p3.__ = null);
      } catch (n3) {
        if (e3.length = h3, u4.__v = null, c3 || null != o3) {
          if (n3.then) {
            for (u4.__u |= c3 ? 160 : 128; f4 && 8 == f4.nodeType && f4.nextSibling; ) f4 = f4.nextSibling;
            null != o3 && (o3[o3.indexOf(f4)] = null), u4.__e = f4;
          } else if (null != o3) for (j3 = o3.length; j3--; ) b(o3[j3]);
        } else u4.__e = t3.__e;
        null == u4.__k && (u4.__k = t3.__k || []), n3.then || B(u4), l.__e(n3, u4, t3);
      }
    } else null == o3 && u4.__v == t3.__v ? (u4.__k = t3.__k, u4.__e = t3.__e) : f4 = u4.__e = G(t3.__e, u4, t3, i3, r3, o3, e3, c3, a3);
    return (s3 = l.diffed) && s3(u4), 128 & u4.__u ? void 0 : f4;
  }
  function B(n2) {
    n2 && (n2.__c && (n2.__c.__e = true), n2.__k && n2.__k.some(B));
  }
  function D(n2, u4, t3) {
    for (var i3 = 0; i3 < t3.length; i3++) J(t3[i3], t3[++i3], t3[++i3]);
    l.__c && l.__c(u4, n2), n2.some(function(u5) {
      try {
        n2 = u5.__h, u5.__h = [], n2.some(function(n3) {
          n3.call(u5);
        });
      } catch (n3) {
        l.__e(n3, u5.__v);
      }
    });
  }
  function E(n2) {
    return "object" != typeof n2 || null == n2 || n2.__b > 0 ? n2 : g(n2) ? n2.map(E) : void 0 !== n2.constructor ? null : m({}, n2);
  }
  function G(u4, t3, i3, r3, o3, e3, f4, c3, a3) {
    var s3, h3, p3, v3, y3, w3, _3, m3 = i3.props || d, k3 = t3.props, x3 = t3.type;
    if ("svg" == x3 ? o3 = "http://www.w3.org/2000/svg" : "math" == x3 ? o3 = "http://www.w3.org/1998/Math/MathML" : o3 || (o3 = "http://www.w3.org/1999/xhtml"), null != e3) {
      for (s3 = 0; s3 < e3.length; s3++) if ((y3 = e3[s3]) && "setAttribute" in y3 == !!x3 && (x3 ? y3.localName == x3 : 3 == y3.nodeType)) {
        u4 = y3, e3[s3] = null;
        break;
      }
    }
    if (null == u4) {
      if (null == x3) return document.createTextNode(k3);
      u4 = document.createElementNS(o3, x3, k3.is && k3), c3 && (l.__m && l.__m(t3, e3), c3 = false), e3 = null;
    }
    if (null == x3) m3 === k3 || c3 && u4.data == k3 || (u4.data = k3);
    else {
      if (e3 = "textarea" == x3 && null != k3.defaultValue ? null : e3 && n.call(u4.childNodes), !c3 && null != e3) for (m3 = {}, s3 = 0; s3 < u4.attributes.length; s3++) m3[(y3 = u4.attributes[s3]).name] = y3.value;
      for (s3 in m3) y3 = m3[s3], "dangerouslySetInnerHTML" == s3 ? p3 = y3 : "children" == s3 || s3 in k3 || "value" == s3 && "defaultValue" in k3 || "checked" == s3 && "defaultChecked" in k3 || N(u4, s3, null, y3, o3);
      for (s3 in k3) y3 = k3[s3], "children" == s3 ? v3 = y3 : "dangerouslySetInnerHTML" == s3 ? h3 = y3 : "value" == s3 ? w3 = y3 : "checked" == s3 ? _3 = y3 : c3 && "function" != typeof y3 || m3[s3] === y3 || N(u4, s3, y3, m3[s3], o3);
      if (h3) c3 || p3 && (h3.__html == p3.__html || h3.__html == u4.innerHTML) || (u4.innerHTML = h3.__html), t3.__k = [];
      else if (p3 && (u4.innerHTML = ""), L("template" == t3.type ? u4.content : u4, g(v3) ? v3 : [v3], t3, i3, r3, "foreignObject" == x3 ? "http://www.w3.org/1999/xhtml" : o3, e3, f4, e3 ? e3[0] : i3.__k && $(i3, 0), c3, a3), null != e3) for (s3 = e3.length; s3--; ) b(e3[s3]);
      c3 && "textarea" != x3 || (s3 = "value", "progress" == x3 && null == w3 ? u4.removeAttribute("value") : null != w3 && (w3 !== u4[s3] || "progress" == x3 && !w3 || "option" == x3 && w3 != m3[s3]) && N(u4, s3, w3, m3[s3], o3), s3 = "checked", null != _3 && _3 != u4[s3] && N(u4, s3, _3, m3[s3], o3));
    }
    return u4;
  }
  function J(n2, u4, t3) {
    try {
      if ("function" == typeof n2) {
        var i3 = "function" == typeof n2.__u;
        i3 && n2.__u(), i3 && null == u4 || (n2.__u = n2(u4));
      } else n2.current = u4;
    } catch (n3) {
      l.__e(n3, t3);
    }
  }
  function K(n2, u4, t3) {
    var i3, r3;
    if (l.unmount && l.unmount(n2), (i3 = n2.ref) && (i3.current && i3.current != n2.__e || J(i3, null, u4)), null != (i3 = n2.__c)) {
      if (i3.componentWillUnmount) try {
        i3.componentWillUnmount();
      } catch (n3) {
        l.__e(n3, u4);
      }
      i3.base = i3.__P = i3.__n = null;
    }
    if (i3 = n2.__k) for (r3 = 0; r3 < i3.length; r3++) i3[r3] && K(i3[r3], u4, t3 || "function" != typeof n2.type);
    t3 || b(n2.__e), n2.__c = n2.__ = n2.__e = void 0;
  }
  function Q(n2, l3, u4) {
    return this.constructor(n2, u4);
  }
  function R(u4, t3, i3) {
    var r3, o3, e3, f4;
    t3 == document && (t3 = document.documentElement), l.__ && l.__(u4, t3), o3 = (r3 = "function" == typeof i3) ? null : i3 && i3.__k || t3.__k, e3 = [], f4 = [], q(t3, u4 = (!r3 && i3 || t3).__k = k(S, null, [u4]), o3 || d, d, t3.namespaceURI, !r3 && i3 ? [i3] : o3 ? null : t3.firstChild ? n.call(t3.childNodes) : null, e3, !r3 && i3 ? i3 : o3 ? o3.__e : t3.firstChild, r3, f4), D(e3, u4, f4), u4.props.children = null;
  }
  function X(n2) {
    function l3(n3) {
      var u4, t3;
      return this.getChildContext || (u4 = /* @__PURE__ */ new Set(), (t3 = {})[l3.__c] = this, this.getChildContext = function() {
        return t3;
      }, this.componentWillUnmount = function() {
        u4 = null;
      }, this.shouldComponentUpdate = function(n4) {
        this.props.value != n4.value && u4.forEach(function(n5) {
          n5.__e = true, A(n5);
        });
      }, this.sub = function(n4) {
        u4.add(n4);
        var l4 = n4.componentWillUnmount;
        n4.componentWillUnmount = function() {
          u4 && u4.delete(n4), l4 && l4.call(n4);
        };
      }), n3.children;
    }
    return l3.__c = "__cC" + y++, l3.__ = n2, l3.Provider = l3.__l = (l3.Consumer = function(n3, l4) {
      return n3.children(l4);
    }).contextType = l3, l3;
  }
  n = w.slice, l = { __e: function(n2, l3, u4, t3) {
    for (var i3, r3, o3; l3 = l3.__; ) if ((i3 = l3.__c) && !i3.__) try {
      if ((r3 = i3.constructor) && null != r3.getDerivedStateFromError && (i3.setState(r3.getDerivedStateFromError(n2)), o3 = i3.__d), null != i3.componentDidCatch && (i3.componentDidCatch(n2, t3 || {}), o3 = i3.__d), o3) return i3.__E = i3;
    } catch (l4) {
      n2 = l4;
    }
    throw n2;
  } }, u = 0, t = function(n2) {
    return null != n2 && void 0 === n2.constructor;
  }, C.prototype.setState = function(n2, l3) {
    var u4;
    u4 = null != this.__s && this.__s != this.state ? this.__s : this.__s = m({}, this.state), "function" == typeof n2 && (n2 = n2(m({}, u4), this.props)), n2 && m(u4, n2), null != n2 && this.__v && (l3 && this._sb.push(l3), A(this));
  }, C.prototype.forceUpdate = function(n2) {
    this.__v && (this.__e = true, n2 && this.__h.push(n2), A(this));
  }, C.prototype.render = S, i = [], o = "function" == typeof Promise ? Promise.prototype.then.bind(Promise.resolve()) : setTimeout, e = function(n2, l3) {
    return n2.__v.__b - l3.__v.__b;
  }, H.__r = 0, f = Math.random().toString(8), c = "__d" + f, a = "__a" + f, s = /(PointerCapture)$|Capture$/i, h = 0, p = V(false), v = V(true), y = 0;

  // ../../main/vscode-extension/node_modules/preact/hooks/dist/hooks.module.js
  var t2;
  var r2;
  var u2;
  var i2;
  var o2 = 0;
  var f2 = [];
  var c2 = l;
  var e2 = c2.__b;
  var a2 = c2.__r;
  var v2 = c2.diffed;
  var l2 = c2.__c;
  var m2 = c2.unmount;
  var p2 = c2.__;
  function s2(n2, t3) {
    c2.__h && c2.__h(r2, n2, o2 || t3), o2 = 0;
    var u4 = r2.__H || (r2.__H = { __: [], __h: [] });
    return n2 >= u4.__.length && u4.__.push({}), u4.__[n2];
  }
  function d2(n2) {
    return o2 = 1, y2(D2, n2);
  }
  function y2(n2, u4, i3) {
    var o3 = s2(t2++, 2);
    if (o3.t = n2, !o3.__c && (o3.__ = [i3 ? i3(u4) : D2(void 0, u4), function(n3) {
      var t3 = o3.__N ? o3.__N[0] : o3.__[0], r3 = o3.t(t3, n3);
      t3 !== r3 && (o3.__N = [r3, o3.__[1]], o3.__c.setState({}));
    }], o3.__c = r2, !r2.__f)) {
      var f4 = function(n3, t3, r3) {
        if (!o3.__c.__H) return true;
        var u5 = false, i4 = o3.__c.props !== n3;
        if (o3.__c.__H.__.some(function(n4) {
          if (n4.__N) {
            u5 = true;
            var t4 = n4.__[0];
            n4.__ = n4.__N, n4.__N = void 0, t4 !== n4.__[0] && (i4 = true);
          }
        }), c3) {
          var f5 = c3.call(this, n3, t3, r3);
          return u5 ? f5 || i4 : f5;
        }
        return !u5 || i4;
      };
      r2.__f = true;
      var c3 = r2.shouldComponentUpdate, e3 = r2.componentWillUpdate;
      r2.componentWillUpdate = function(n3, t3, r3) {
        if (this.__e) {
          var u5 = c3;
          c3 = void 0, f4(n3, t3, r3), c3 = u5;
        }
        e3 && e3.call(this, n3, t3, r3);
      }, r2.shouldComponentUpdate = f4;
    }
    return o3.__N || o3.__;
  }
  function h2(n2, u4) {
    var i3 = s2(t2++, 3);
    !c2.__s && C2(i3.__H, u4) && (i3.__ = n2, i3.u = u4, r2.__H.__h.push(i3));
  }
  function _2(n2, u4) {
    var i3 = s2(t2++, 4);
    !c2.__s && C2(i3.__H, u4) && (i3.__ = n2, i3.u = u4, r2.__h.push(i3));
  }
  function A2(n2) {
    return o2 = 5, T2(function() {
      return { current: n2 };
    }, []);
  }
  function T2(n2, r3) {
    var u4 = s2(t2++, 7);
    return C2(u4.__H, r3) && (u4.__ = n2(), u4.__H = r3, u4.__h = n2), u4.__;
  }
  function x2(n2) {
    var u4 = r2.context[n2.__c], i3 = s2(t2++, 9);
    return i3.c = n2, u4 ? (null == i3.__ && (i3.__ = true, u4.sub(r2)), u4.props.value) : n2.__;
  }
  function j2() {
    for (var n2; n2 = f2.shift(); ) {
      var t3 = n2.__H;
      if (n2.__P && t3) try {
        t3.__h.some(z2), t3.__h.some(B2), t3.__h = [];
      } catch (r3) {
        t3.__h = [], c2.__e(r3, n2.__v);
      }
    }
  }
  c2.__b = function(n2) {
    r2 = null, e2 && e2(n2);
  }, c2.__ = function(n2, t3) {
    n2 && t3.__k && t3.__k.__m && (n2.__m = t3.__k.__m), p2 && p2(n2, t3);
  }, c2.__r = function(n2) {
    a2 && a2(n2), t2 = 0;
    var i3 = (r2 = n2.__c).__H;
    i3 && (u2 === r2 ? (i3.__h = [], r2.__h = [], i3.__.some(function(n3) {
      n3.__N && (n3.__ = n3.__N), n3.u = n3.__N = void 0;
    })) : (i3.__h.some(z2), i3.__h.some(B2), i3.__h = [], t2 = 0)), u2 = r2;
  }, c2.diffed = function(n2) {
    v2 && v2(n2);
    var t3 = n2.__c;
    t3 && t3.__H && (t3.__H.__h.length && (1 !== f2.push(t3) && i2 === c2.requestAnimationFrame || ((i2 = c2.requestAnimationFrame) || w2)(j2)), t3.__H.__.some(function(n3) {
      n3.u && (n3.__H = n3.u, n3.u = void 0);
    })), u2 = r2 = null;
  }, c2.__c = function(n2, t3) {
    t3.some(function(n3) {
      try {
        n3.__h.some(z2), n3.__h = n3.__h.filter(function(n4) {
          return !n4.__ || B2(n4);
        });
      } catch (r3) {
        t3.some(function(n4) {
          n4.__h && (n4.__h = []);
        }), t3 = [], c2.__e(r3, n3.__v);
      }
    }), l2 && l2(n2, t3);
  }, c2.unmount = function(n2) {
    m2 && m2(n2);
    var t3, r3 = n2.__c;
    r3 && r3.__H && (r3.__H.__.some(function(n3) {
      try {
        z2(n3);
      } catch (n4) {
        t3 = n4;
      }
    }), r3.__H = void 0, t3 && c2.__e(t3, r3.__v));
  };
  var k2 = "function" == typeof requestAnimationFrame;
  function w2(n2) {
    var t3, r3 = function() {
      clearTimeout(u4), k2 && cancelAnimationFrame(t3), setTimeout(n2);
    }, u4 = setTimeout(r3, 35);
    k2 && (t3 = requestAnimationFrame(r3));
  }
  function z2(n2) {
    var t3 = r2, u4 = n2.__c;
    "function" == typeof u4 && (n2.__c = void 0, u4()), r2 = t3;
  }
  function B2(n2) {
    var t3 = r2;
    n2.__c = n2.__(), r2 = t3;
  }
  function C2(n2, t3) {
    return !n2 || n2.length !== t3.length || t3.some(function(t4, r3) {
      return t4 !== n2[r3];
    });
  }
  function D2(n2, t3) {
    return "function" == typeof t3 ? t3(n2) : t3;
  }

  // src/shape.ts
  var ShapeError = class extends Error {
  };
  function read(reader, value, what) {
    return reader(value, what);
  }
  function readOr(reader, value) {
    try {
      return reader(value, "value");
    } catch (error) {
      if (error instanceof ShapeError) {
        return void 0;
      }
      throw error;
    }
  }
  var text = (value, at) => typeof value === "string" ? value : fail(at, "a string", value);
  var finite = (value, at) => typeof value === "number" && Number.isFinite(value) ? value : fail(at, "a number", value);
  var flag = (value, at) => typeof value === "boolean" ? value : fail(at, "true or false", value);
  function nullable(reader) {
    return (value, at) => value === null || value === void 0 ? null : reader(value, at);
  }
  function list(reader) {
    return (value, at) => {
      if (!Array.isArray(value)) {
        return fail(at, "a list", value);
      }
      return reader === finite && value.every(Number.isFinite) ? value : value.map((entry, index) => reader(entry, `${at}[${index}]`));
    };
  }
  function oneOf(...words2) {
    return (value, at) => words2.find((word) => word === value) ?? fail(at, words2.map((word) => `"${word}"`).join(" or "), value);
  }
  function object(fields) {
    return (value, at) => {
      const given = asRecord(value, at);
      const entries = Object.entries(fields).map(([name, reader]) => [name, reader(given[name], `${at}.${name}`)]);
      return Object.fromEntries(entries);
    };
  }
  function dictionary(reader) {
    return (value, at) => Object.fromEntries(
      Object.entries(asRecord(value, at)).map(([name, entry]) => [name, reader(entry, `${at}.${name}`)])
    );
  }
  function asRecord(value, at) {
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : fail(at, "an object", value);
  }
  function fail(at, wanted, value) {
    const shown = JSON.stringify(value);
    throw new ShapeError(`${at} should be ${wanted} and is ${(shown ?? String(value)).slice(0, 80)}`);
  }

  // src/pages/contract.ts
  function ask(name, answer) {
    return { name, answer };
  }
  var cellKind = oneOf("text", "place", "time", "bytes", "count", "share", "flops", "rate");
  var linkKind = oneOf("launch", "backward", "wait");
  var section = oneOf("step", "span", "overlap", "idle", "device");
  var severity = oneOf("warning", "info", "hint");
  var sliceKind = oneOf("step", "phase", "annotation", "frame", "line", "library", "module", "operator", "runtime", "kernel", "copy", "collective", "span", "other");
  var trackKind = oneOf("steps", "thread", "stream");
  var unit = oneOf("bytes", "percent", "count");
  var run = object({
    id: text,
    title: text,
    folder: text,
    recordedAt: text,
    ranks: list(finite),
    stages: list(text),
    traces: finite,
    sizeBytes: finite
  });
  var runs = object({
    runs: list(run),
    version: text
  });
  var fact = object({
    label: text,
    value: text
  });
  var header = object({
    run: text,
    title: text,
    isDevice: flag,
    device: text,
    stage: text,
    rank: nullable(finite),
    ranks: list(finite),
    step: nullable(finite),
    steps: list(finite),
    facts: list(fact),
    notes: list(text),
    hasLines: flag,
    hasMemory: flag,
    hasCollectives: flag,
    hasModules: flag
  });
  var figure = object({
    label: text,
    value: finite,
    kind: cellKind,
    help: text
  });
  var part = object({
    name: text,
    timeNs: finite,
    share: finite
  });
  var split = object({
    section,
    device: text,
    title: text,
    help: text,
    wholeNs: finite,
    parts: list(part),
    isPartition: flag
  });
  var stepBar = object({
    number: finite,
    durationNs: finite,
    busyNs: finite,
    idleNs: finite,
    phases: list(finite)
  });
  var hotLine = object({
    file: text,
    line: finite,
    place: text,
    function: text,
    source: text,
    costNs: finite,
    share: finite,
    selfNs: finite,
    backwardNs: finite,
    idleNs: finite,
    verdict: text
  });
  var shownFinding = object({
    code: text,
    title: text,
    severity,
    file: text,
    line: finite,
    place: text,
    function: text,
    message: text,
    remedy: text,
    savingNs: finite,
    savingShare: finite,
    evidence: list(figure)
  });
  var overview = object({
    sentence: text,
    figures: list(figure),
    splits: list(split),
    phaseNames: list(text),
    steps: list(stepBar),
    lines: list(hotLine),
    findings: list(shownFinding),
    moreFindings: finite
  });
  var findings = object({
    findings: list(shownFinding),
    wallNs: finite,
    steps: finite
  });
  var track = object({
    id: finite,
    kind: trackKind,
    title: text,
    rows: finite,
    slices: finite,
    device: finite,
    isTraining: flag
  });
  var counter = object({
    id: finite,
    title: text,
    unit,
    largest: finite,
    device: finite
  });
  var place = object({
    file: text,
    line: finite,
    function: text,
    title: text
  });
  var timeline = object({
    endNs: finite,
    beginEpochNs: text,
    tracks: list(track),
    counters: list(counter),
    kinds: list(sliceKind),
    places: list(place),
    slices: finite
  });
  var trackWindow = object({
    id: finite,
    start: list(finite),
    end: list(finite),
    row: list(finite),
    name: list(finite),
    kind: list(finite),
    place: list(finite),
    slice: list(finite),
    count: list(finite),
    busy: list(finite)
  });
  var counterWindow = object({
    id: finite,
    at: list(finite),
    value: list(finite)
  });
  var window2 = object({
    beginNs: finite,
    endNs: finite,
    resolutionNs: finite,
    tracks: list(trackWindow),
    counters: list(counterWindow),
    names: list(text)
  });
  var link = object({
    kind: linkKind,
    fromSlice: finite,
    fromTrack: finite,
    fromRow: finite,
    fromNs: finite,
    toSlice: finite,
    toTrack: finite,
    toRow: finite,
    toNs: finite,
    title: text
  });
  var sliceDetails = object({
    slice: finite,
    track: finite,
    row: finite,
    name: text,
    kind: sliceKind,
    startNs: finite,
    endNs: finite,
    selfNs: finite,
    place: finite,
    stack: list(finite),
    module: text,
    facts: list(fact),
    links: list(link)
  });
  var busy = object({
    track: finite,
    busyNs: finite
  });
  var sum = object({
    name: text,
    kind: sliceKind,
    place: finite,
    timeNs: finite,
    count: finite
  });
  var change = object({
    counter: finite,
    first: finite,
    last: finite,
    least: finite,
    largest: finite,
    mean: finite
  });
  var selection = object({
    beginNs: finite,
    endNs: finite,
    busy: list(busy),
    idleNs: list(finite),
    devices: list(finite),
    lines: list(sum),
    kernels: list(sum),
    operators: list(sum),
    counters: list(change)
  });
  var found = object({
    slice: finite,
    track: finite,
    row: finite,
    startNs: finite,
    endNs: finite,
    name: text
  });
  var matches = object({
    count: finite,
    timeNs: finite,
    found: list(found)
  });
  var durations = object({
    name: text,
    kind: sliceKind,
    count: finite,
    leastNs: finite,
    medianNs: finite,
    p95Ns: finite,
    largestNs: finite,
    totalNs: finite,
    edgesNs: list(finite),
    counts: list(finite),
    longest: list(found)
  });
  var questions = {
    /** Which runs can be chosen. */
    runs: ask("runs", runs),
    /** What is shown. */
    header: ask("header", header),
    /** How long a step is, what it is made of, which lines and findings matter. */
    overview: ask("overview", overview),
    /** What could be changed. */
    findings: ask("findings", findings),
    /** What there is to see of the chosen rank's trace, else of the first's. */
    timeline: ask("timeline", timeline),
    /** What a stretch of time shows. */
    timeline_window: ask("timeline_window", window2),
    /** All that is known of one slice. */
    timeline_slice: ask("timeline_slice", sliceDetails),
    /** The sums of a stretch of time. */
    timeline_selection: ask("timeline_selection", selection),
    /** The slices whose names hold a text. */
    timeline_search: ask("timeline_search", matches),
    /** The slices that belong to a line of code. */
    timeline_line: ask("timeline_line", matches),
    /** How long the slices of one name are. */
    timeline_durations: ask("timeline_durations", durations)
  };

  // src/flame/sums.ts
  var UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "\xB5s"], [1, "ns"]];
  function duration(ns) {
    const [size, unit2] = UNITS.find(([one]) => ns >= one * 0.9995) ?? [1, "ns"];
    const value = ns / size;
    const isWhole = Number.isInteger(value) && value < 1e3;
    const digits = isWhole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return ns === 0 ? "0" : `${value.toFixed(digits)} ${unit2}`;
  }
  function share(ratio) {
    const percent = 100 * ratio;
    if (percent === 0) {
      return "0 %";
    }
    return percent < 0.05 ? "<0.1 %" : `${percent.toFixed(percent >= 9.95 ? 0 : 1)} %`;
  }

  // src/pages/words.ts
  var BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  var DECIMAL = ["", "k", "M", "G", "T", "P", "E"];
  function bytes(size) {
    return scaled(size, 1024, BINARY);
  }
  function flops(count2) {
    return `${scaled(count2, 1e3, DECIMAL)}FLOP`;
  }
  function scaled(given, base, units) {
    let [value, at] = [Math.abs(given), 0];
    while (value >= base - 0.5 && at < units.length - 1) {
      [value, at] = [value / base, at + 1];
    }
    const digits = at === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return given === 0 ? "0" : `${given < 0 ? "-" : ""}${value.toFixed(digits)} ${units[at] ?? ""}`;
  }
  function count(value) {
    return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2 });
  }
  function time(ns) {
    return ns < 0 ? `-${duration(-ns)}` : duration(ns);
  }
  function words(value, kind) {
    if (value === null || typeof value === "string") {
      return value ?? "";
    }
    switch (kind) {
      case "time":
        return time(value);
      case "bytes":
        return bytes(value);
      case "share":
        return share(value);
      case "flops":
        return flops(value);
      case "rate":
        return `${flops(value)}/s`;
      case "count":
        return count(value);
      case "text":
      case "place":
        return String(value);
    }
  }

  // ../../main/vscode-extension/node_modules/preact/jsx-runtime/dist/jsxRuntime.module.js
  var f3 = 0;
  function u3(e3, t3, n2, o3, i3, u4) {
    t3 || (t3 = {});
    var a3, c3, p3 = t3;
    if ("ref" in p3) for (c3 in p3 = {}, t3) "ref" == c3 ? a3 = t3[c3] : p3[c3] = t3[c3];
    var l3 = { type: e3, props: p3, key: n2, ref: a3, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: void 0, __v: --f3, __i: -1, __u: 0, __source: i3, __self: u4 };
    if ("function" == typeof e3 && (a3 = e3.defaultProps)) for (c3 in a3) void 0 === p3[c3] && (p3[c3] = a3[c3]);
    return l.vnode && l.vnode(l3), l3;
  }

  // src/pages/parts/Answered.tsx
  function Answer({ of, children }) {
    switch (of.state) {
      case "waiting":
        return /* @__PURE__ */ u3(Waiting, { done: of.done, total: of.total });
      case "failed":
        return /* @__PURE__ */ u3("div", { class: "failure", role: "alert", children: [
          /* @__PURE__ */ u3("h3", { children: "This cannot be shown" }),
          /* @__PURE__ */ u3("p", { children: of.message })
        ] });
      case "ready":
        return /* @__PURE__ */ u3(S, { children: children(of.answer) });
    }
  }
  function Waiting({ done, total }) {
    if (total === 0) {
      return /* @__PURE__ */ u3("div", { class: "waiting quiet", role: "status", "aria-label": "Loading" });
    }
    return /* @__PURE__ */ u3("div", { class: "waiting", role: "status", children: [
      /* @__PURE__ */ u3("p", { children: [
        "Reading the trace: ",
        bytes(Math.min(done, total)),
        " of ",
        bytes(total)
      ] }),
      /* @__PURE__ */ u3("progress", { max: total, value: Math.min(done, total) }),
      /* @__PURE__ */ u3("p", { class: "muted", children: "It is read once; the next time it opens at once." })
    ] });
  }

  // src/pages/source/source.ts
  var NotYetError = class extends Error {
    constructor(done, total) {
      super("the trace is still being read");
      this.done = done;
      this.total = total;
    }
    done;
    total;
  };
  var FailedError = class extends Error {
  };
  function queryOf(asked) {
    const words2 = new URLSearchParams();
    for (const [name, value] of Object.entries(asked)) {
      if (value !== null && value !== void 0 && value !== "") {
        words2.set(name, typeof value === "object" ? value.join(",") : String(value));
      }
    }
    words2.sort();
    return words2.toString();
  }

  // src/pages/source/useAnswer.ts
  var AGAIN_MS = 150;
  var KEPT = 60;
  var SourceContext = X(void 0);
  function useSource() {
    const source = x2(SourceContext);
    if (source === void 0) {
      throw new Error("there is no source around this component");
    }
    return source;
  }
  var kept = /* @__PURE__ */ new WeakMap();
  function asking(source, question, asked, told = () => void 0) {
    const known = kept.get(source) ?? /* @__PURE__ */ new Map();
    kept.set(source, known);
    const key = `${question.name}?${queryOf(asked)}`;
    const before = known.get(key);
    known.delete(key);
    const answer = before ?? patiently(source, question, asked, told);
    known.set(key, answer);
    answer.catch(() => known.delete(key));
    const [oldest] = known.keys();
    if (known.size > KEPT && oldest !== void 0) {
      known.delete(oldest);
    }
    return answer;
  }
  async function patiently(source, question, asked, told = () => void 0) {
    for (; ; ) {
      try {
        return await source.ask(question, asked);
      } catch (error) {
        if (!(error instanceof NotYetError)) {
          throw error;
        }
        told(error.done, error.total);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }
  function useAnswer(question, asked, keepsLast = false) {
    const source = useSource();
    const key = queryOf(asked);
    const [state, setState] = d2({ state: "waiting", done: 0, total: 0 });
    h2(() => {
      let isWanted = true;
      const set = (next) => {
        if (isWanted) {
          setState(next);
        }
      };
      const wait = (done, total) => set({ state: "waiting", done, total });
      if (!keepsLast) {
        wait(0, 0);
      }
      asking(source, question, asked, wait).then(
        (answer) => set({ state: "ready", answer }),
        (error) => set({ state: "failed", message: error instanceof Error ? error.message : String(error) })
      );
      return () => {
        isWanted = false;
      };
    }, [source, question, key]);
    return state;
  }

  // src/pages/app/address.ts
  var CHOICE = ["run", "rank", "stage", "step", "phase", "module", "baseline"];
  function parsed(hash) {
    const [page = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
    return { page: decoded(page), words: Object.fromEntries(new URLSearchParams(query)) };
  }
  function decoded(word) {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  }
  function written({ page, words: words2 }) {
    const query = new URLSearchParams(Object.entries(words2).filter(([, value]) => value !== "")).toString();
    return `#/${encodeURIComponent(page)}${query === "" ? "" : `?${query}`}`;
  }
  function linkTo(from, page, words2 = {}) {
    const chosen = Object.fromEntries(CHOICE.flatMap((name) => from.words[name] === void 0 ? [] : [[name, from.words[name]]]));
    return written({ page, words: { ...chosen, ...words2 } });
  }
  function withWords(from, words2) {
    return written({ page: from.page, words: { ...from.words, ...words2 } });
  }
  function go(hash, isNew = true) {
    if (isNew) {
      window.location.hash = hash;
    } else {
      window.history.replaceState(null, "", hash);
      window.dispatchEvent(new HashChangeEvent("hashchange"));
    }
  }
  function useAddress() {
    const [address, setAddress] = d2(() => parsed(window.location.hash));
    h2(() => {
      const changed = () => setAddress(parsed(window.location.hash));
      window.addEventListener("hashchange", changed);
      return () => window.removeEventListener("hashchange", changed);
    }, []);
    return address;
  }
  function choiceOf({ words: words2 }) {
    return {
      ...words2["run"] === void 0 ? {} : { run: words2["run"] },
      ...words2["stage"] === void 0 ? {} : { stage: words2["stage"] },
      ...whole("rank", words2["rank"]),
      ...whole("step", words2["step"]),
      ...words2["phase"] === void 0 ? {} : { phase: words2["phase"] },
      ...words2["module"] === void 0 ? {} : { module: words2["module"] }
    };
  }
  function whole(name, word) {
    return word !== void 0 && /^-?\d{1,15}$/.test(word) ? { [name]: Number(word) } : {};
  }

  // src/pages/app/Boundary.tsx
  var Boundary = class extends C {
    state = { message: void 0 };
    componentDidCatch(error) {
      this.setState({ message: error instanceof Error ? error.message : String(error) });
    }
    render() {
      const { message } = this.state;
      if (message === void 0) {
        return this.props.children;
      }
      return /* @__PURE__ */ u3("div", { class: "failure", role: "alert", children: [
        /* @__PURE__ */ u3("h3", { children: "This page failed" }),
        /* @__PURE__ */ u3("p", { children: message })
      ] });
    }
  };

  // src/pages/app/Pickers.tsx
  function Pickers({ header: header2, address }) {
    const found2 = useAnswer(questions.runs, {}, true);
    const runs2 = found2.state === "ready" ? found2.answer.runs : [];
    const run2 = runs2.find(({ id }) => id === header2.run);
    const choose = (words2) => go(withWords(address, words2));
    return /* @__PURE__ */ u3("div", { class: "pickers", children: [
      runs2.length > 1 ? /* @__PURE__ */ u3(
        Picker,
        {
          label: "Run",
          value: header2.run,
          options: runs2.map((one) => [one.id, titleOf(one)]),
          choose: (id) => choose({ run: id, rank: "", stage: "", step: "", phase: "", module: "" })
        }
      ) : /* @__PURE__ */ u3("strong", { class: "title", children: header2.title }),
      run2 !== void 0 && run2.stages.length > 1 && /* @__PURE__ */ u3(
        Picker,
        {
          label: "Stage",
          value: address.words["stage"] ?? run2.stages[0] ?? "",
          options: run2.stages.map((stage) => [stage, stage === "" ? "(none)" : stage]),
          choose: (stage) => choose({ stage, step: "" })
        }
      ),
      run2 !== void 0 && run2.ranks.length > 1 && /* @__PURE__ */ u3(
        Picker,
        {
          label: "Rank",
          value: address.words["rank"] ?? "",
          options: [["", `all ${run2.ranks.length} ranks`], ...run2.ranks.map((rank) => [String(rank), `rank ${rank}`])],
          choose: (rank) => choose({ rank, step: "" })
        }
      ),
      header2.steps.length > 1 && /* @__PURE__ */ u3(
        Picker,
        {
          label: "Step",
          value: address.words["step"] ?? "",
          options: [["", `all ${header2.steps.length} steps`], ...header2.steps.map((step) => [String(step), `step ${step}`])],
          choose: (step) => choose({ step })
        }
      )
    ] });
  }
  function titleOf(run2) {
    const when = new Date(run2.recordedAt);
    const time2 = Number.isNaN(when.getTime()) ? "" : ` \xB7 ${when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`;
    return `${run2.title}${time2}`;
  }
  function Picker({ label: label2, value, options, choose }) {
    return /* @__PURE__ */ u3("select", { "aria-label": label2, title: label2, value, onChange: (event) => choose(event.currentTarget.value), children: options.map(([id, words2]) => /* @__PURE__ */ u3("option", { value: id, children: words2 }, id)) });
  }

  // src/pages/parts/Place.tsx
  function Place({ file, line, class: style = "", children }) {
    const source = useSource();
    const address = useAddress();
    if (file === "") {
      return /* @__PURE__ */ u3("span", { class: `place ${style}`, children });
    }
    const opened = (event) => {
      if (source.opensCode) {
        event.preventDefault();
        source.open({ file, line });
      }
    };
    return /* @__PURE__ */ u3("a", { class: `place ${style}`, href: linkTo(address, "lines", { file, line: String(line) }), title: `${file}:${line}`, onClick: opened, children });
  }

  // src/pages/findings/FindingCard.tsx
  function FindingCard({ of, isShort = false }) {
    return /* @__PURE__ */ u3("article", { class: `finding ${of.severity}`, children: [
      /* @__PURE__ */ u3("header", { children: [
        /* @__PURE__ */ u3("h3", { children: [
          /* @__PURE__ */ u3("span", { class: "code", children: of.code }),
          " ",
          of.title
        ] }),
        of.savingNs > 0 && /* @__PURE__ */ u3("span", { class: "saving", title: "The most that could be saved, of the wall time", children: [
          "up to ",
          share(of.savingShare)
        ] })
      ] }),
      of.place !== "" && /* @__PURE__ */ u3("p", { children: [
        /* @__PURE__ */ u3(Place, { file: of.file, line: of.line, children: of.place }),
        of.function !== "" && /* @__PURE__ */ u3("span", { class: "muted", children: [
          " in ",
          of.function
        ] })
      ] }),
      /* @__PURE__ */ u3("p", { children: of.message }),
      /* @__PURE__ */ u3("p", { class: "remedy", children: of.remedy }),
      !isShort && of.evidence.length > 0 && /* @__PURE__ */ u3("dl", { class: "evidence", children: [
        of.savingNs > 0 && /* @__PURE__ */ u3("div", { children: [
          /* @__PURE__ */ u3("dt", { children: "could save" }),
          /* @__PURE__ */ u3("dd", { children: duration(of.savingNs) })
        ] }),
        of.evidence.map(({ label: label2, value, kind }) => /* @__PURE__ */ u3("div", { children: [
          /* @__PURE__ */ u3("dt", { children: label2 }),
          /* @__PURE__ */ u3("dd", { children: words(value, kind) })
        ] }, label2))
      ] })
    ] });
  }

  // src/pages/findings/FindingsPage.tsx
  function FindingsPage({ address }) {
    const found2 = useAnswer(questions.findings, choiceOf(address));
    return /* @__PURE__ */ u3(Answer, { of: found2, children: ({ findings: findings2 }) => findings2.length === 0 ? /* @__PURE__ */ u3("p", { class: "muted", children: "Nothing was found that would pay to change." }) : /* @__PURE__ */ u3("div", { class: "stack", children: findings2.map((one) => /* @__PURE__ */ u3(FindingCard, { of: one }, `${one.code} ${one.file}:${one.line}`)) }) });
  }

  // src/pages/parts/Figures.tsx
  function Figures({ of }) {
    return /* @__PURE__ */ u3("dl", { class: "figures", children: of.map(({ label: label2, value, kind, help }) => /* @__PURE__ */ u3("div", { title: help, children: [
      /* @__PURE__ */ u3("dt", { children: label2 }),
      /* @__PURE__ */ u3("dd", { children: words(value, kind) })
    ] }, label2)) });
  }
  function Facts({ of }) {
    return /* @__PURE__ */ u3("dl", { class: "facts", children: of.map(({ label: label2, value }) => /* @__PURE__ */ u3("div", { children: [
      /* @__PURE__ */ u3("dt", { children: label2 }),
      /* @__PURE__ */ u3("dd", { children: value })
    ] }, label2)) });
  }

  // src/pages/overview/SplitBar.tsx
  function SplitBar({ split: split2 }) {
    const parts = split2.parts.filter(({ timeNs }) => timeNs > 0);
    const title = split2.device === "" ? split2.title : `${split2.title}: ${split2.device}`;
    return /* @__PURE__ */ u3("figure", { class: "split", children: [
      /* @__PURE__ */ u3("figcaption", { children: [
        /* @__PURE__ */ u3("h2", { children: title }),
        /* @__PURE__ */ u3("span", { class: "muted", children: split2.help })
      ] }),
      split2.isPartition && /* @__PURE__ */ u3("div", { class: "bar", role: "img", "aria-label": parts.map((part2) => `${part2.name} ${share(part2.share)}`).join(", "), children: parts.map((part2) => /* @__PURE__ */ u3("span", { class: `tone${split2.parts.indexOf(part2)}`, style: { flexGrow: part2.share }, title: `${part2.name}: ${duration(part2.timeNs)}` }, part2.name)) }),
      /* @__PURE__ */ u3("ul", { class: "legend", children: parts.map((part2) => /* @__PURE__ */ u3("li", { children: [
        split2.isPartition && /* @__PURE__ */ u3("span", { class: `swatch tone${split2.parts.indexOf(part2)}` }),
        part2.name,
        " ",
        /* @__PURE__ */ u3("strong", { children: share(part2.share) }),
        " ",
        /* @__PURE__ */ u3("span", { class: "muted", children: duration(part2.timeNs) })
      ] }, part2.name)) })
    ] });
  }

  // src/pages/overview/StepBars.tsx
  function StepBars({ steps, phaseNames }) {
    const address = useAddress();
    const most = Math.max(...steps.map(({ durationNs }) => durationNs), 1);
    const used = phaseNames.map((_3, phase) => steps.some((step) => (step.phases[phase] ?? 0) > 0));
    return /* @__PURE__ */ u3("figure", { class: "steps", children: [
      /* @__PURE__ */ u3("div", { class: "bars", role: "list", children: steps.map((step) => /* @__PURE__ */ u3(
        "button",
        {
          type: "button",
          role: "listitem",
          title: `step ${step.number}: ${duration(step.durationNs)}
${phaseNames.flatMap((name, phase) => (step.phases[phase] ?? 0) > 0 ? [`${name} ${duration(step.phases[phase] ?? 0)}`] : []).join("\n")}`,
          "aria-label": `step ${step.number}: ${duration(step.durationNs)}`,
          onClick: () => go(withWords(address, { step: String(step.number) })),
          children: [
            /* @__PURE__ */ u3("span", { class: "time", children: steps.length <= 24 ? duration(step.durationNs) : "" }),
            /* @__PURE__ */ u3("span", { class: "stackbar", style: { height: `${100 * step.durationNs / most}%` }, children: step.phases.map((time2, phase) => time2 > 0 ? /* @__PURE__ */ u3("span", { class: `phase${phase}`, style: { flexGrow: time2 } }, phase) : null) }),
            /* @__PURE__ */ u3("span", { class: "label", children: steps.length <= 40 ? step.number : "" })
          ]
        },
        step.number
      )) }),
      /* @__PURE__ */ u3("ul", { class: "legend", children: phaseNames.map(
        (name, phase) => used[phase] === true ? /* @__PURE__ */ u3("li", { children: [
          /* @__PURE__ */ u3("span", { class: `swatch phase${phase}` }),
          name
        ] }, name) : null
      ) })
    ] });
  }

  // src/pages/overview/OverviewPage.tsx
  function OverviewPage({ address, header: header2 }) {
    const found2 = useAnswer(questions.overview, choiceOf(address));
    return /* @__PURE__ */ u3(Answer, { of: found2, children: (answer) => /* @__PURE__ */ u3(S, { children: [
      /* @__PURE__ */ u3("p", { class: "lead", children: answer.sentence }),
      /* @__PURE__ */ u3(Figures, { of: answer.figures }),
      /* @__PURE__ */ u3("div", { class: "columns", children: [
        /* @__PURE__ */ u3("section", { children: [
          /* @__PURE__ */ u3("h2", { children: "The lines that cost most" }),
          /* @__PURE__ */ u3(HotLines, { lines: answer.lines }),
          answer.lines.length > 0 && /* @__PURE__ */ u3("a", { href: linkTo(address, "lines"), children: "All lines" })
        ] }),
        /* @__PURE__ */ u3("section", { children: [
          /* @__PURE__ */ u3("h2", { children: "What to change" }),
          /* @__PURE__ */ u3(Advice, { of: answer, address })
        ] })
      ] }),
      answer.steps.length > 1 && /* @__PURE__ */ u3("section", { children: [
        /* @__PURE__ */ u3("h2", { children: "Steps" }),
        /* @__PURE__ */ u3(StepBars, { steps: answer.steps, phaseNames: answer.phaseNames })
      ] }),
      answer.splits.map((split2) => /* @__PURE__ */ u3("section", { children: /* @__PURE__ */ u3(SplitBar, { split: split2 }) }, `${split2.section} ${split2.device}`)),
      /* @__PURE__ */ u3("section", { children: [
        /* @__PURE__ */ u3("h2", { children: "Where this was recorded" }),
        /* @__PURE__ */ u3(Facts, { of: header2.facts })
      ] })
    ] }) });
  }
  function HotLines({ lines }) {
    if (lines.length === 0) {
      return /* @__PURE__ */ u3("p", { class: "muted", children: "No line of code is known to have cost time." });
    }
    return /* @__PURE__ */ u3("ol", { class: "hotlines", children: lines.map((line) => /* @__PURE__ */ u3("li", { children: [
      /* @__PURE__ */ u3("div", { class: "row", children: [
        /* @__PURE__ */ u3(Place, { file: line.file, line: line.line, children: line.place }),
        /* @__PURE__ */ u3("span", { class: "muted", children: line.function }),
        /* @__PURE__ */ u3("span", { class: "grow" }),
        line.verdict !== "" && /* @__PURE__ */ u3("span", { class: "chip", children: line.verdict }),
        /* @__PURE__ */ u3("span", { class: "number", children: duration(line.costNs) }),
        /* @__PURE__ */ u3("span", { class: "number strong", children: share(line.share) })
      ] }),
      /* @__PURE__ */ u3("code", { children: line.source }),
      /* @__PURE__ */ u3("meter", { min: 0, max: 1, value: line.share, "aria-label": "Share of the cost" })
    ] }, `${line.file}:${line.line}`)) });
  }
  function Advice({ of, address }) {
    if (of.findings.length === 0) {
      return /* @__PURE__ */ u3("p", { class: "muted", children: "Nothing was found that would pay to change." });
    }
    return /* @__PURE__ */ u3("div", { class: "stack", children: [
      of.findings.map((one) => /* @__PURE__ */ u3(FindingCard, { of: one, isShort: true }, `${one.code} ${one.file}:${one.line}`)),
      of.moreFindings > 0 && /* @__PURE__ */ u3("a", { href: linkTo(address, "findings"), children: [
        of.moreFindings,
        " more"
      ] })
    ] });
  }

  // src/pages/timeline/keys.ts
  var KEYS = [
    { keys: ["w", "+", "="], words: "zoom in", action: { type: "hold", key: "in" } },
    { keys: ["s", "-"], words: "zoom out", action: { type: "hold", key: "out" } },
    { keys: ["a", "ArrowLeft"], words: "move left", action: { type: "hold", key: "left" } },
    { keys: ["d", "ArrowRight"], words: "move right", action: { type: "hold", key: "right" } },
    { keys: ["ArrowUp"], words: "scroll up", action: { type: "scroll", by: -60 } },
    { keys: ["ArrowDown"], words: "scroll down", action: { type: "scroll", by: 60 } },
    { keys: ["0"], words: "show the whole", action: { type: "whole" } },
    { keys: ["f"], words: "fit the chosen slice", action: { type: "fit" } },
    { keys: ["m"], words: "mark the chosen slice's time", action: { type: "mark" } },
    { keys: ["."], words: "next slice in its row", action: { type: "beside", direction: "next" } },
    { keys: [","], words: "previous slice in its row", action: { type: "beside", direction: "previous" } },
    { keys: ["["], words: "the slice around it", action: { type: "beside", direction: "above" } },
    { keys: ["]"], words: "the first slice in it", action: { type: "beside", direction: "below" } },
    { keys: ["/"], words: "search", action: { type: "search" } },
    { keys: ["n"], words: "next found", action: { type: "next" } },
    { keys: ["p"], words: "previous found", action: { type: "previous" } },
    { keys: ["?"], words: "these keys", action: { type: "help" } },
    { keys: ["Escape"], words: "close, unmark, choose nothing", action: { type: "close" } }
  ];
  function actionOf(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f") {
      return { type: "search" };
    }
    const typed = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, [contenteditable]") !== null;
    if (event.ctrlKey || event.metaKey || event.altKey || typed && event.key !== "Escape") {
      return void 0;
    }
    return KEYS.find(({ keys }) => keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key))?.action;
  }
  function keyWords(key) {
    return { ArrowLeft: "\u2190", ArrowRight: "\u2192", ArrowUp: "\u2191", ArrowDown: "\u2193", Escape: "Esc" }[key] ?? key;
  }

  // src/pages/timeline/Help.tsx
  function Help({ close }) {
    return /* @__PURE__ */ u3(Dialog, { title: "Keys", close, children: [
      /* @__PURE__ */ u3("dl", { class: "keys", children: KEYS.map(({ keys, words: words2 }) => /* @__PURE__ */ u3("div", { children: [
        /* @__PURE__ */ u3("dt", { children: keys.map((key) => /* @__PURE__ */ u3("kbd", { children: keyWords(key) }, key)) }),
        /* @__PURE__ */ u3("dd", { children: words2 })
      ] }, words2)) }),
      /* @__PURE__ */ u3("p", { class: "muted", children: "The wheel zooms where the pointer is; with shift, or sideways, it moves. Drag moves; shift and drag marks a stretch of time. A double click fits a slice." })
    ] });
  }
  function Perfetto({ close, trace }) {
    return /* @__PURE__ */ u3(Dialog, { title: "Open in Perfetto", close, children: [
      /* @__PURE__ */ u3("p", { children: "Make a file for Perfetto, with a track for your lines, and open it there:" }),
      /* @__PURE__ */ u3("pre", { children: /* @__PURE__ */ u3("code", { children: [
        "deepscope export ",
        quoted(trace),
        " --to perfetto -o timeline.json"
      ] }) }),
      /* @__PURE__ */ u3("p", { children: [
        /* @__PURE__ */ u3("a", { href: "https://ui.perfetto.dev", target: "_blank", rel: "noopener noreferrer", children: "ui.perfetto.dev" }),
        " ",
        "reads it in your browser: \u201COpen trace file\u201D, or drop it there. The trace itself opens there, too. These pages send nothing themselves."
      ] })
    ] });
  }
  function quoted(path) {
    return /^[\w./:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
  }
  function Dialog({ title, close, children }) {
    const dialog = A2(null);
    h2(() => dialog.current?.showModal(), []);
    return /* @__PURE__ */ u3("dialog", { ref: dialog, class: "over", "aria-label": title, onClose: close, onClick: (event) => event.target === dialog.current && close(), children: [
      /* @__PURE__ */ u3("header", { children: [
        /* @__PURE__ */ u3("h2", { children: title }),
        /* @__PURE__ */ u3("button", { type: "button", class: "plain", "aria-label": "Close", onClick: close, children: "\xD7" })
      ] }),
      children
    ] });
  }

  // src/pages/timeline/ticks.ts
  var UNITS2 = [
    [1e9, "s", 9],
    [1e6, "ms", 6],
    [1e3, "\xB5s", 3],
    [1, "ns", 0]
  ];
  function ticks(view, width, apart = 110) {
    const step = roundStep((view.end - view.begin) / Math.max(width, 1) * apart);
    const first = Math.ceil(view.begin / step) * step;
    const count2 = Math.max(Math.floor((view.end - first) / step) + 1, 0);
    return Array.from({ length: count2 }, (_3, index) => {
      const ns = Math.round(first + index * step);
      return { ns, label: tickLabel(ns, step) };
    });
  }
  function roundStep(ns) {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    return ([1, 2, 5].find((digit) => digit * power >= ns * (1 - 1e-12)) ?? 10) * power;
  }
  function tickLabel(ns, step) {
    if (ns === 0) {
      return "0";
    }
    const [size, unit2, most] = UNITS2.find(([one]) => Math.abs(ns) >= one) ?? UNITS2[3];
    const digits = Math.min(Math.max(Math.ceil(Math.log10(size / step) - 1e-9), 0), most);
    return `${fixed(ns, size, digits)} ${unit2}`;
  }
  function exact(ns) {
    const whole2 = Math.round(ns);
    const [size, unit2, most] = UNITS2.find(([one]) => Math.abs(whole2) >= one) ?? UNITS2[3];
    return `${fixed(whole2, size, most)} ${unit2}`;
  }
  function fixed(ns, size, digits) {
    const [magnitude, sign] = [Math.abs(ns), ns < 0 ? "-" : ""];
    const rest = String(magnitude % size).padStart(String(size).length - 1, "0");
    const shown = size === 1 ? "" : rest.slice(0, digits).replace(/(\d{3})(?=\d)/g, "$1\u2009");
    return `${sign}${Math.floor(magnitude / size)}${shown === "" ? "" : `.${shown}`}`;
  }

  // src/pages/timeline/Histogram.tsx
  var HEIGHT = 46;
  var MOST = 5;
  function Histogram({ of, length, chosen, show }) {
    const most = Math.max(...of.counts, 1);
    const own = of.counts.findIndex((_3, at) => length >= (of.edgesNs[at] ?? 0) && length <= (of.edgesNs[at + 1] ?? 0));
    const words2 = `${count(of.count)} of this name, ${duration(of.totalNs)} in all; median ${duration(of.medianNs)}, 95 % within ${duration(of.p95Ns)}`;
    return /* @__PURE__ */ u3(S, { children: [
      /* @__PURE__ */ u3("h3", { children: [
        count(of.count),
        " of this name \xB7 ",
        duration(of.totalNs)
      ] }),
      of.count > 1 && /* @__PURE__ */ u3(S, { children: [
        /* @__PURE__ */ u3("div", { class: "bins", role: "img", "aria-label": words2, children: of.counts.map((bin, at) => /* @__PURE__ */ u3(
          "span",
          {
            class: at === own ? "own" : "",
            title: `${duration(of.edgesNs[at] ?? 0)} to ${duration(of.edgesNs[at + 1] ?? 0)}: ${count(bin)}`,
            style: { height: `${bin === 0 ? 0 : Math.max(bin / most * HEIGHT, 2)}px` }
          },
          at
        )) }),
        /* @__PURE__ */ u3("p", { class: "scale muted", children: [
          /* @__PURE__ */ u3("span", { children: duration(of.leastNs) }),
          /* @__PURE__ */ u3("span", { children: [
            "median ",
            duration(of.medianNs),
            " \xB7 p95 ",
            duration(of.p95Ns)
          ] }),
          /* @__PURE__ */ u3("span", { children: duration(of.largestNs) })
        ] }),
        /* @__PURE__ */ u3("ol", { class: "longest", "aria-label": "The longest", children: of.longest.slice(0, MOST).map((found2) => /* @__PURE__ */ u3("li", { children: [
          /* @__PURE__ */ u3("button", { type: "button", class: "link", "aria-current": found2.slice === chosen, onClick: () => show(found2), children: duration(found2.endNs - found2.startNs) }),
          " ",
          /* @__PURE__ */ u3("span", { class: "muted", children: [
            "at ",
            exact(found2.startNs)
          ] })
        ] }, found2.slice)) })
      ] })
    ] });
  }

  // src/pages/timeline/useAsked.ts
  function useAsked(question, asked) {
    const source = useSource();
    const key = asked === void 0 ? "" : `${queryOf(asked)}&`;
    const [state, setState] = d2();
    h2(() => {
      if (asked === void 0) {
        setState(void 0);
        return void 0;
      }
      let isWanted = true;
      const set = (answered2) => {
        if (isWanted) {
          setState({ key, answered: answered2 });
        }
      };
      asking(source, question, asked).then(
        (answer) => set({ state: "ready", answer }),
        (error) => set({ state: "failed", message: error instanceof Error ? error.message : String(error) })
      );
      return () => {
        isWanted = false;
      };
    }, [source, question, key]);
    return asked === void 0 ? void 0 : state?.answered;
  }

  // src/pages/timeline/DetailsPanel.tsx
  var MOST_LINES = 12;
  function DetailsPanel({ of, choice, details, jump, show, fit, seek }) {
    const like = useAsked(questions.timeline_durations, { ...choice, name: details.name, kind: details.kind });
    const length = details.endNs - details.startNs;
    const track2 = of.tracks.find(({ id }) => id === details.track);
    return /* @__PURE__ */ u3("div", { class: "details", children: [
      /* @__PURE__ */ u3("section", { children: [
        /* @__PURE__ */ u3("h2", { class: "name", children: [
          /* @__PURE__ */ u3("span", { class: "chip", children: details.kind }),
          " ",
          details.name
        ] }),
        /* @__PURE__ */ u3("dl", { class: "times", children: [
          /* @__PURE__ */ u3("div", { children: [
            /* @__PURE__ */ u3("dt", { children: "Duration" }),
            /* @__PURE__ */ u3("dd", { title: exact(length), children: duration(length) })
          ] }),
          details.selfNs !== length && /* @__PURE__ */ u3("div", { children: [
            /* @__PURE__ */ u3("dt", { children: "Itself" }),
            /* @__PURE__ */ u3("dd", { title: exact(details.selfNs), children: duration(details.selfNs) })
          ] }),
          /* @__PURE__ */ u3("div", { children: [
            /* @__PURE__ */ u3("dt", { children: "Start" }),
            /* @__PURE__ */ u3("dd", { children: exact(details.startNs) })
          ] }),
          /* @__PURE__ */ u3("div", { children: [
            /* @__PURE__ */ u3("dt", { children: "Track" }),
            /* @__PURE__ */ u3("dd", { children: track2?.title ?? "" })
          ] })
        ] }),
        /* @__PURE__ */ u3("p", { class: "buttons", children: [
          /* @__PURE__ */ u3("button", { type: "button", title: "Fit (f)", onClick: fit, children: "Fit" }),
          /* @__PURE__ */ u3("button", { type: "button", title: "Show all of this name", onClick: () => seek(details.name), children: "Find all" })
        ] }),
        /* @__PURE__ */ u3(Stack, { of, details })
      ] }),
      /* @__PURE__ */ u3("section", { children: [
        details.module !== "" && /* @__PURE__ */ u3("p", { children: [
          /* @__PURE__ */ u3("span", { class: "muted", children: "Module" }),
          " ",
          /* @__PURE__ */ u3("code", { children: details.module })
        ] }),
        details.facts.length > 0 && /* @__PURE__ */ u3(Facts, { of: details.facts }),
        /* @__PURE__ */ u3(Links, { of: details, jump })
      ] }),
      /* @__PURE__ */ u3("section", { children: like?.state === "ready" && /* @__PURE__ */ u3(Histogram, { of: like.answer, length, chosen: details.slice, show }) })
    ] });
  }
  function Stack({ of, details }) {
    const owner = of.places[details.place];
    const stack = details.stack.flatMap((place2) => of.places[place2] ?? []);
    if (owner === void 0 && stack.length === 0) {
      return null;
    }
    const rest = stack.filter((place2, at) => at > 0 || place2 !== owner);
    return /* @__PURE__ */ u3("ol", { class: "linestack", "aria-label": "Lines, the innermost first", children: [
      owner !== void 0 && /* @__PURE__ */ u3("li", { class: "strong", children: /* @__PURE__ */ u3(Place, { file: owner.file, line: owner.line, children: owner.title }) }),
      rest.slice(0, MOST_LINES).map((place2, at) => /* @__PURE__ */ u3("li", { children: /* @__PURE__ */ u3(Place, { file: place2.file, line: place2.line, children: place2.title }) }, `${at} ${place2.title}`)),
      rest.length > MOST_LINES && /* @__PURE__ */ u3("li", { class: "muted", children: [
        "and ",
        count(rest.length - MOST_LINES),
        " more"
      ] })
    ] });
  }
  var LINK_WORDS = {
    launch: ["launches", "launched by"],
    backward: ["its backward", "backward of"],
    wait: ["waited for by", "waits for"]
  };
  var MOST_LINKS = 20;
  function Links({ of, jump }) {
    if (of.links.length === 0) {
      return null;
    }
    return /* @__PURE__ */ u3("ul", { class: "links", children: [
      of.links.slice(0, MOST_LINKS).map((link2) => {
        const isFrom = link2.fromSlice === of.slice;
        const other = isFrom ? link2.toSlice : link2.fromSlice;
        const apart = link2.toNs - link2.fromNs;
        return /* @__PURE__ */ u3("li", { children: [
          /* @__PURE__ */ u3("span", { class: "muted", children: LINK_WORDS[link2.kind][isFrom ? 0 : 1] }),
          " ",
          /* @__PURE__ */ u3("button", { type: "button", class: "link", onClick: () => jump(other), children: link2.title }),
          " ",
          apart > 0 && /* @__PURE__ */ u3("span", { class: "muted", children: [
            duration(apart),
            " ",
            isFrom ? "later" : "before"
          ] })
        ] }, `${link2.kind} ${link2.fromSlice} ${link2.toSlice}`);
      }),
      of.links.length > MOST_LINKS && /* @__PURE__ */ u3("li", { class: "muted", children: [
        "and ",
        count(of.links.length - MOST_LINKS),
        " more"
      ] })
    ] });
  }

  // src/pages/timeline/palette.ts
  var KINDS = {
    step: ["--tone7", 0.4],
    phase: ["--tone7", 0.6],
    annotation: ["--tone6", 0.6],
    frame: ["--tone7", 0.22],
    line: ["--tone1", 0.78],
    library: ["--tone7", 0.34],
    module: ["--tone3", 0.6],
    operator: ["--tone0", 0.62],
    runtime: ["--tone4", 0.55],
    kernel: ["--tone2", 0.72],
    copy: ["--tone5", 0.72],
    collective: ["--tone3", 0.9],
    span: ["--tone7", 0.45],
    other: ["--tone7", 0.3]
  };
  var PHASES = {
    data: "--tone1",
    forward: "--tone0",
    backward: "--tone2",
    optimizer: "--tone3"
  };
  var TONES = 7;
  var SHADES = 3;
  var SHADE = 0.1;
  var ORDER = Object.keys(KINDS);
  var FIRST_TONE = ORDER.length * SHADES;
  var FIRST_PHASE = FIRST_TONE + TONES * SHADES;
  function fillOf(kind, name, hash, place2, by) {
    if (kind === "phase") {
      const at = Object.keys(PHASES).findIndex((phase) => name.toLowerCase().includes(phase));
      return at < 0 ? ORDER.indexOf(kind) * SHADES : FIRST_PHASE + at;
    }
    if (by === "kind" || kind !== "kernel" && kind !== "copy") {
      return ORDER.indexOf(kind) * SHADES + hash % SHADES;
    }
    if (by === "line") {
      return place2 < 0 ? ORDER.indexOf("other") * SHADES : FIRST_TONE + place2 * 5 % TONES * SHADES + Math.floor(place2 / TONES) % SHADES;
    }
    return FIRST_TONE + hash % (TONES * SHADES);
  }
  function paletteOf(element) {
    const style = getComputedStyle(element);
    const resolve = resolver();
    const colour = (name) => resolve(style.getPropertyValue(name).trim());
    const background = colour("--background");
    const shades = (tone, part2) => Array.from({ length: SHADES }, (_3, shade) => mixed(tone, background, Math.max(part2 - shade * SHADE, 0.1)));
    const fills = [
      ...ORDER.flatMap((kind) => shades(colour(KINDS[kind][0]), KINDS[kind][1])),
      ...Array.from({ length: TONES }, (_3, tone) => shades(colour(`--tone${tone}`), 0.74)).flat(),
      ...Object.values(PHASES).map((tone) => mixed(colour(tone), background, 0.6))
    ];
    const dim = mixed(colour("--muted"), background, 0.13);
    const heat = style.getPropertyValue("--heat").trim();
    return {
      background: css(background),
      surface: css(colour("--surface")),
      border: css(colour("--border")),
      strong: css(colour("--border-strong")),
      text: css(colour("--text")),
      muted: css(colour("--muted")),
      accent: css(colour("--accent")),
      accentSoft: css(colour("--accent-soft")),
      marker: css(colour("--marker")),
      heat: css(resolve(`rgb(${heat})`)),
      font: getComputedStyle(document.body).fontFamily,
      charts: [0, 2, 3, 1, 5, 4].map((tone) => css(colour(`--tone${tone}`))),
      fills: fills.map(css),
      words: fills.map((fill) => luminance(fill) > 0.2 ? "#14171c" : "#ffffff"),
      dim: css(dim),
      dimWords: css(mixed(colour("--muted"), background, 0.7))
    };
  }
  function resolver() {
    const context = document.createElement("canvas").getContext("2d");
    return (colour) => {
      if (context === null) {
        return [128, 128, 128];
      }
      context.fillStyle = "#808080";
      context.fillStyle = colour;
      const said = context.fillStyle;
      const hex = /^#(..)(..)(..)$/.exec(said)?.slice(1).map((pair) => parseInt(pair, 16));
      const [red = 128, green = 128, blue = 128] = hex ?? (said.match(/[\d.]+/g) ?? []).map(Number);
      return [red, green, blue];
    };
  }
  function mixed(one, other, part2) {
    const at = (place2) => Math.round(one[place2] * part2 + other[place2] * (1 - part2));
    return [at(0), at(1), at(2)];
  }
  function css([red, green, blue]) {
    return `rgb(${red} ${green} ${blue})`;
  }
  function luminance(colour) {
    const [red, green, blue] = colour.map((part2) => part2 <= 10 ? part2 / 3294 : ((part2 / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
  function watchTheme(changed) {
    const watcher = new MutationObserver(changed);
    for (const element of [document.documentElement, document.body]) {
      watcher.observe(element, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-vscode-theme-id"] });
    }
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    return () => {
      watcher.disconnect();
      system.removeEventListener("change", changed);
    };
  }

  // src/pages/timeline/Legend.tsx
  var WORDS = {
    line: "your lines",
    library: "library lines",
    frame: "Python frames",
    module: "modules",
    operator: "operators",
    runtime: "runtime calls",
    kernel: "kernels",
    copy: "copies",
    collective: "collectives"
  };
  function Legend({ of }) {
    const [palette, setPalette] = d2(() => paletteOf(document.documentElement));
    h2(() => watchTheme(() => setPalette(paletteOf(document.documentElement))), []);
    const kinds = of.kinds.filter((kind) => WORDS[kind] !== void 0);
    return /* @__PURE__ */ u3("ul", { class: "legend", children: kinds.map((kind) => /* @__PURE__ */ u3("li", { children: [
      /* @__PURE__ */ u3("span", { class: "swatch", style: { background: palette.fills[fillOf(kind, "", 0, -1, "kind")] ?? "" } }),
      WORDS[kind]
    ] }, kind)) });
  }

  // src/pages/timeline/units.ts
  function valueWords(value, unit2) {
    switch (unit2) {
      case "bytes":
        return bytes(value);
      case "percent":
        return `${count(value)} %`;
      case "count":
        return count(value);
    }
  }

  // src/pages/timeline/StretchPanel.tsx
  var MOST2 = 14;
  function StretchPanel({ of, sums, fit, clear, seek }) {
    const length = sums.endNs - sums.beginNs;
    const work = sums.lines.reduce((sum2, line) => sum2 + line.timeNs, 0);
    const hasDevice = sums.devices.length > 0;
    return /* @__PURE__ */ u3("div", { class: "stretch", children: [
      /* @__PURE__ */ u3("header", { children: [
        /* @__PURE__ */ u3("h2", { title: `${exact(sums.beginNs)} to ${exact(sums.endNs)}`, children: [
          "In these ",
          duration(length),
          ":"
        ] }),
        /* @__PURE__ */ u3("span", { children: [
          duration(work),
          " ",
          hasDevice ? "device work" : "operators\u2019 own time",
          sums.devices.map((device, at) => /* @__PURE__ */ u3("span", { class: "muted", children: [
            " ",
            "\xB7 device ",
            device,
            " idle ",
            duration(sums.idleNs[at] ?? 0),
            " (",
            share((sums.idleNs[at] ?? 0) / Math.max(length, 1)),
            ")"
          ] }, device))
        ] }),
        /* @__PURE__ */ u3("span", { class: "grow" }),
        /* @__PURE__ */ u3("button", { type: "button", onClick: fit, children: "Fit" }),
        /* @__PURE__ */ u3("button", { type: "button", title: "Unmark (Esc)", onClick: clear, children: "Unmark" })
      ] }),
      /* @__PURE__ */ u3("div", { class: "sums", children: [
        /* @__PURE__ */ u3(
          Sums,
          {
            title: hasDevice ? "Lines \xB7 device" : "Lines \xB7 operators",
            of: sums.lines,
            whole: work,
            cell: (sum2) => {
              const place2 = of.places[sum2.place];
              return place2 === void 0 ? /* @__PURE__ */ u3("span", { class: "muted", children: "no line" }) : /* @__PURE__ */ u3(Place, { file: place2.file, line: place2.line, children: place2.title });
            }
          }
        ),
        sums.kernels.length > 0 && /* @__PURE__ */ u3(Sums, { title: "Kernels and copies", of: sums.kernels, whole: work, cell: (sum2) => /* @__PURE__ */ u3(Name, { of: sum2, seek }) }),
        /* @__PURE__ */ u3(
          Sums,
          {
            title: "Operators \xB7 own time",
            of: sums.operators,
            whole: sums.operators.reduce((sum2, one) => sum2 + one.timeNs, 0),
            cell: (sum2) => /* @__PURE__ */ u3(Name, { of: sum2, seek })
          }
        ),
        /* @__PURE__ */ u3("section", { children: [
          /* @__PURE__ */ u3(Tracks, { of, busy: sums.busy, length }),
          sums.counters.length > 0 && /* @__PURE__ */ u3(Counters, { of: of.counters, changes: sums.counters })
        ] })
      ] })
    ] });
  }
  function Sums({ title, of, whole: whole2, cell }) {
    const rest = of.slice(MOST2);
    return /* @__PURE__ */ u3("section", { children: [
      /* @__PURE__ */ u3("h3", { children: title }),
      of.length === 0 && /* @__PURE__ */ u3("p", { class: "muted", children: "none" }),
      /* @__PURE__ */ u3("table", { children: /* @__PURE__ */ u3("tbody", { children: [
        of.slice(0, MOST2).map((sum2) => /* @__PURE__ */ u3("tr", { title: `${sum2.name}: ${exact(sum2.timeNs)}, ${count(sum2.count)} times`, children: [
          /* @__PURE__ */ u3("td", { class: "what", children: cell(sum2) }),
          /* @__PURE__ */ u3("td", { class: "number", children: duration(sum2.timeNs) }),
          /* @__PURE__ */ u3("td", { class: "number muted", children: share(whole2 > 0 ? sum2.timeNs / whole2 : 0) }),
          /* @__PURE__ */ u3("td", { class: "number muted", children: [
            "\xD7",
            count(sum2.count)
          ] })
        ] }, `${sum2.kind} ${sum2.place} ${sum2.name}`)),
        rest.length > 0 && /* @__PURE__ */ u3("tr", { class: "muted", children: [
          /* @__PURE__ */ u3("td", { class: "what", children: [
            count(rest.length),
            " more"
          ] }),
          /* @__PURE__ */ u3("td", { class: "number", children: duration(rest.reduce((sum2, one) => sum2 + one.timeNs, 0)) }),
          /* @__PURE__ */ u3("td", { colSpan: 2 })
        ] })
      ] }) })
    ] });
  }
  function Name({ of, seek }) {
    return of.name === "(others)" ? /* @__PURE__ */ u3("span", { class: "muted", children: of.name }) : /* @__PURE__ */ u3("button", { type: "button", class: "link", onClick: () => seek(of.name), children: of.name });
  }
  function Tracks({ of, busy: busy2, length }) {
    const rows = busy2.filter(({ busyNs, track: track2 }) => busyNs > 0 && of.tracks[track2]?.kind !== "steps");
    return /* @__PURE__ */ u3(S, { children: [
      /* @__PURE__ */ u3("h3", { children: "Busy" }),
      /* @__PURE__ */ u3("table", { children: /* @__PURE__ */ u3("tbody", { children: rows.slice(0, MOST2).map(({ track: track2, busyNs }) => /* @__PURE__ */ u3("tr", { children: [
        /* @__PURE__ */ u3("td", { class: "what", children: of.tracks.find(({ id }) => id === track2)?.title ?? "" }),
        /* @__PURE__ */ u3("td", { class: "number", children: duration(busyNs) }),
        /* @__PURE__ */ u3("td", { class: "number muted", children: share(busyNs / Math.max(length, 1)) })
      ] }, track2)) }) })
    ] });
  }
  function Counters({ of, changes }) {
    return /* @__PURE__ */ u3(S, { children: [
      /* @__PURE__ */ u3("h3", { children: "Counters" }),
      /* @__PURE__ */ u3("table", { class: "changes", children: /* @__PURE__ */ u3("tbody", { children: changes.map((change3) => {
        const counter2 = of.find(({ id }) => id === change3.counter);
        const words2 = (value) => valueWords(value, counter2?.unit ?? "count");
        return /* @__PURE__ */ u3("tr", { title: `least ${words2(change3.least)}, mean ${words2(change3.mean)}`, children: [
          /* @__PURE__ */ u3("td", { class: "what", children: counter2?.title ?? "" }),
          /* @__PURE__ */ u3("td", { class: "number", children: [
            words2(change3.first),
            " \u2192 ",
            words2(change3.last)
          ] }),
          /* @__PURE__ */ u3("td", { class: "number muted", children: [
            "\u2264 ",
            words2(change3.largest)
          ] })
        ] }, change3.counter);
      }) }) })
    ] });
  }

  // src/pages/timeline/Panel.tsx
  function Panel(props) {
    const { of, choice, ranks, details, sums } = props;
    if (sums !== void 0) {
      return /* @__PURE__ */ u3("div", { class: "panel", "aria-label": "The marked stretch", role: "region", children: /* @__PURE__ */ u3(Answer, { of: sums, children: (shown) => /* @__PURE__ */ u3(StretchPanel, { of, sums: shown, fit: props.fitStretch, clear: props.unmark, seek: props.seek }) }) });
    }
    if (details !== void 0) {
      return /* @__PURE__ */ u3("div", { class: "panel", "aria-label": "The chosen slice", role: "region", children: /* @__PURE__ */ u3(Answer, { of: details, children: (shown) => /* @__PURE__ */ u3(DetailsPanel, { of, choice, details: shown, jump: props.jump, show: props.show, fit: props.fitSlice, seek: props.seek }) }) });
    }
    return /* @__PURE__ */ u3("div", { class: "panel quiet", children: [
      /* @__PURE__ */ u3(Legend, { of }),
      /* @__PURE__ */ u3("p", { class: "muted", children: [
        ranks.length > 1 && `Rank ${ranks[0] ?? 0} of ${ranks.length} is shown; choose another one above. `,
        count(of.slices),
        " slices. Click one for all that is known of it; shift and drag sums up a stretch of time."
      ] })
    ] });
  }

  // src/pages/timeline/layout.ts
  var ROW = 18;
  var CLOSED = 22;
  var CHART = 40;
  var HEAD = 17;
  var GAP = 5;
  var MANY = 2;
  var OPEN_COUNTERS = 3;
  function trackKey(track2) {
    return `t${track2.id}`;
  }
  function lanesOf(of, choices) {
    const isShown = (title) => title.toLowerCase().includes(choices.filter.trim().toLowerCase());
    const others = of.tracks.filter(isOther);
    const lanes = [];
    let y3 = 0;
    const head = choices.hasHeads ? HEAD : 0;
    const add = (track2) => {
      const key = trackKey(track2);
      const begins = !isOther(track2) || others.length <= MANY;
      const isOpen = begins !== choices.turned.has(key);
      const rows = Math.max(track2.rows, 1);
      const height = isOpen || rows === 1 ? rows * ROW : CLOSED;
      lanes.push({ type: "track", track: track2, key, title: track2.title, isOpen, y: y3, height: head + height, head, rowHeight: height / rows });
      y3 += head + height + GAP;
    };
    const addCounter = (counter2, at) => {
      const key = `c${counter2.id}`;
      const isOpen = at < OPEN_COUNTERS !== choices.turned.has(key);
      const height = isOpen ? CHART : 12;
      lanes.push({ type: "counter", counter: counter2, key, title: counter2.title, isOpen, y: y3, height: head + height, head });
      y3 += head + height + GAP;
    };
    of.tracks.filter((track2) => track2.kind !== "thread" && isShown(track2.title)).forEach(add);
    of.counters.filter((counter2) => isShown(counter2.title)).forEach(addCounter);
    of.tracks.filter((track2) => track2.isTraining && isShown(track2.title)).forEach(add);
    others.filter((track2) => isShown(track2.title)).forEach(add);
    return lanes;
  }
  function isOther({ kind, isTraining }) {
    return kind === "thread" && !isTraining;
  }
  function heightOf(lanes) {
    const last = lanes.at(-1);
    return last === void 0 ? 0 : last.y + last.height + GAP;
  }
  function seen(lanes, top, bottom) {
    return lanes.filter((lane) => lane.y + lane.height > top && lane.y < bottom);
  }
  function laneAt(lanes, y3) {
    return lanes.find((lane) => y3 >= lane.y && y3 < lane.y + lane.height);
  }
  function rowAt(lane, y3) {
    const row = Math.floor((y3 - lane.y - lane.head) / lane.rowHeight);
    return row < lane.track.rows ? row : -1;
  }
  function overviewOf(of) {
    const streams = of.tracks.filter((track2) => track2.kind === "stream").slice(0, 8);
    const training = of.tracks.filter((track2) => track2.isTraining);
    const threads = training.length > 0 ? training : of.tracks.filter((track2) => track2.kind === "thread").slice(0, 1);
    return [...threads, ...streams];
  }

  // src/pages/timeline/tiles.ts
  function tileOf(window3, track2, numbers) {
    const depth = track2.row.reduce((most, row) => Math.max(most, row + 1), 0);
    const rows = new Int32Array(depth + 1);
    for (const row of track2.row) {
      rows[row + 1] = (rows[row + 1] ?? 0) + 1;
    }
    for (let row = 0; row < depth; row++) {
      rows[row + 1] = (rows[row + 1] ?? 0) + (rows[row] ?? 0);
    }
    return {
      begin: window3.beginNs,
      end: window3.endNs,
      rows,
      start: Float64Array.from(track2.start),
      stop: Float64Array.from(track2.end),
      name: Int32Array.from(track2.name, (name) => numbers[name] ?? 0),
      kind: Uint8Array.from(track2.kind),
      place: Int32Array.from(track2.place),
      slice: Int32Array.from(track2.slice),
      count: Int32Array.from(track2.count),
      busy: Float64Array.from(track2.busy)
    };
  }
  function counterTileOf(window3, counter2) {
    return { begin: window3.beginNs, end: window3.endNs, at: counter2.at, value: counter2.value };
  }
  function numbered(window3, names) {
    return window3.names.map((name) => names.number(name));
  }
  function firstAfter(tile, row, ns) {
    let [low, high] = [tile.rows[row] ?? 0, tile.rows[row + 1] ?? 0];
    while (low < high) {
      const middle = low + high >> 1;
      if ((tile.stop[middle] ?? 0) <= ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  function sliceAt(tile, row, ns, reach) {
    const end = tile.rows[row + 1] ?? 0;
    let [best, distance] = [-1, reach];
    for (let at = firstAfter(tile, row, ns - reach); at < end && (tile.start[at] ?? 0) <= ns + reach; at++) {
      const away = Math.max((tile.start[at] ?? 0) - ns, ns - (tile.stop[at] ?? 0), 0);
      if (away < distance || best < 0 && away <= distance) {
        [best, distance] = [at, away];
      }
    }
    return best;
  }
  function valueAt({ at, value }, ns) {
    let [low, high] = [0, at.length];
    while (low < high) {
      const middle = low + high >> 1;
      if ((at[middle] ?? 0) <= ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return value[low - 1];
  }

  // src/pages/timeline/view.ts
  var LEAST_SPAN_NS = 40;
  var MARGIN = 0.08;
  function spanOf({ begin, end }) {
    return end - begin;
  }
  function clamped({ begin, end }, whole2) {
    const span = Math.min(Math.max(end - begin, LEAST_SPAN_NS), Math.max(whole2, LEAST_SPAN_NS));
    const least = Math.min(Math.max(begin, 0), Math.max(whole2 - span, 0));
    return { begin: least, end: least + span };
  }
  function zoomed(view, factor, at, whole2) {
    const span = Math.min(Math.max(spanOf(view) * factor, LEAST_SPAN_NS), Math.max(whole2, LEAST_SPAN_NS));
    const place2 = (at - view.begin) / spanOf(view);
    return clamped({ begin: at - place2 * span, end: at + (1 - place2) * span }, whole2);
  }
  function panned(view, byNs, whole2) {
    return clamped({ begin: view.begin + byNs, end: view.end + byNs }, whole2);
  }
  function around(begin, end, whole2) {
    const space = Math.max((end - begin) * MARGIN, LEAST_SPAN_NS / 4);
    return clamped({ begin: begin - space, end: end + space }, whole2);
  }
  function revealing(view, begin, end, whole2) {
    if (begin >= view.begin && end <= view.end && end - begin > spanOf(view) / 400) {
      return view;
    }
    if (end - begin > spanOf(view) * 0.8 || end - begin < spanOf(view) / 400) {
      const space = (end - begin) * 3;
      return clamped({ begin: begin - space, end: end + space }, whole2);
    }
    const middle = (begin + end) / 2;
    return clamped({ begin: middle - spanOf(view) / 2, end: middle + spanOf(view) / 2 }, whole2);
  }
  function between(from, to, part2) {
    return { begin: from.begin + (to.begin - from.begin) * part2, end: from.end + (to.end - from.end) * part2 };
  }
  function isNear(one, other, pixels) {
    const pixel = spanOf(other) / pixels / 4;
    return Math.abs(one.begin - other.begin) < pixel && Math.abs(one.end - other.end) < pixel;
  }
  function toX(ns, view, width) {
    return (ns - view.begin) / spanOf(view) * width;
  }
  function toNs(x3, view, width) {
    return view.begin + x3 / width * spanOf(view);
  }

  // src/pages/timeline/drawTracks.ts
  var LEAST_LABEL = 26;
  var LEAST_ROW = 12;
  var FONT = 11;
  var SPACE = 4;
  var DIM = -1;
  function drawTracks(context, scene) {
    const { palette, ratio, width, height, top } = scene;
    context.globalAlpha = 1;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, width * ratio, height * ratio);
    context.font = `${FONT * ratio}px ${palette.font}`;
    context.textBaseline = "alphabetic";
    for (const lane of seen(scene.lanes, top, top + height)) {
      context.fillStyle = palette.border;
      context.fillRect(0, Math.round((lane.y + lane.height + 2 - top) * ratio), width * ratio, 1);
      if (lane.type === "track") {
        drawTrack(context, scene, lane, scene.tiles(lane.track.id));
      }
    }
  }
  function drawTrack(context, scene, lane, pieces) {
    const { ratio, top, height } = scene;
    const words2 = [];
    let last = -Infinity;
    for (let row = 0; row < lane.track.rows; row++) {
      const y3 = (lane.y + lane.head + row * lane.rowHeight - top) * ratio;
      const bottom = y3 + lane.rowHeight * ratio;
      if (bottom < 0 || y3 > height * ratio || Math.round(y3) === last) {
        continue;
      }
      last = Math.round(y3);
      const gap = lane.rowHeight > 6 ? ratio : 0;
      const thickness = Math.max(Math.round(bottom - gap) - last, 1);
      words2.length = 0;
      for (const piece of pieces) {
        drawRow(context, scene, piece, row, last, thickness, lane.rowHeight >= LEAST_ROW ? words2 : void 0);
      }
      const baseline = Math.round(last + thickness / 2 + FONT * ratio * 0.36);
      let fill = "";
      for (const one of words2) {
        if (one.fill !== fill) {
          fill = one.fill;
          context.fillStyle = fill;
        }
        context.fillText(one.text, one.x, baseline);
      }
    }
  }
  function drawRow(context, scene, piece, row, y3, thickness, words2) {
    const { view, ratio, palette } = scene;
    const { tile } = piece;
    const across = scene.width * ratio;
    const scale = across / spanOf(view);
    const left = Math.max(Math.round((piece.begin - view.begin) * scale), 0);
    const right = Math.min(Math.round((piece.end - view.begin) * scale), across);
    const until = tile.rows[row + 1] ?? 0;
    const fills = fillsOf(tile, scene);
    let [edge, number, alpha] = [left, -2, 1];
    for (let at = firstAfter(tile, row, Math.max(piece.begin, view.begin)); at < until; at++) {
      const start = Math.round(((tile.start[at] ?? 0) - view.begin) * scale);
      if (start >= right) {
        break;
      }
      const stop = Math.max(Math.round(((tile.stop[at] ?? 0) - view.begin) * scale), start + 1);
      const from = Math.max(start, edge);
      const to = Math.min(stop, right);
      if (to <= from) {
        continue;
      }
      edge = to;
      const fill = isDimmed(tile, at, scene) ? DIM : fills[at] ?? 0;
      if (fill !== number) {
        number = fill;
        context.fillStyle = fill === DIM ? palette.dim : palette.fills[fill] ?? palette.dim;
      }
      const shown = (tile.count[at] ?? 1) > 1 ? density(tile, at) : 1;
      if (shown !== alpha) {
        alpha = shown;
        context.globalAlpha = shown;
      }
      context.fillRect(from, y3, to - from > 3 * ratio && to === stop ? to - from - ratio : to - from, thickness);
      if (words2 !== void 0 && stop - start >= LEAST_LABEL * ratio && tile.count[at] === 1) {
        label(scene, tile, at, fill, Math.max(start, 0), Math.min(stop, across), left, right, words2);
      }
    }
    if (alpha !== 1) {
      context.globalAlpha = 1;
    }
  }
  function label(scene, tile, at, fill, start, stop, left, right, words2) {
    const { ratio, palette } = scene;
    if (start < left || start >= right || stop - start < LEAST_LABEL * ratio) {
      return;
    }
    const text2 = scene.labels.fitted(scene.names.texts[tile.name[at] ?? 0] ?? "", (stop - start) / ratio - 2 * SPACE);
    if (text2 !== "") {
      words2.push({ text: text2, x: start + SPACE * ratio, fill: fill === DIM ? palette.dimWords : palette.words[fill] ?? palette.text });
    }
  }
  function isDimmed(tile, at, { sought, names }) {
    if (sought === void 0) {
      return false;
    }
    return sought.places === void 0 ? !names.isFound(tile.name[at] ?? 0) : !sought.places.has(tile.place[at] ?? -1);
  }
  function density(tile, at) {
    const length = Math.max((tile.stop[at] ?? 0) - (tile.start[at] ?? 0), 1);
    return 0.4 + 0.15 * Math.round(Math.min((tile.busy[at] ?? 0) / length, 1) * 4);
  }
  var kept2 = /* @__PURE__ */ new WeakMap();
  function fillsOf(tile, { colouring, names, of }) {
    const before = kept2.get(tile);
    if (before?.colouring === colouring) {
      return before.numbers;
    }
    const numbers = Uint16Array.from(
      tile.name,
      (name, at) => fillOf(of.kinds[tile.kind[at] ?? 0] ?? "other", names.texts[name] ?? "", names.hashes[name] ?? 0, tile.place[at] ?? -1, colouring)
    );
    kept2.set(tile, { colouring, numbers });
    return numbers;
  }

  // src/pages/timeline/drawOverview.ts
  var OVERVIEW = 44;
  var EDGE = 3;
  var LEAST_BRUSH = 4;
  function drawWhole(context, scene, width, tracks, tiles) {
    const { palette, ratio, of } = scene;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, width * ratio, OVERVIEW * ratio);
    const scale = width * ratio / Math.max(of.endNs, 1);
    const streams = tracks.filter((track2) => track2.kind === "stream").length;
    const room = (OVERVIEW - 2 * EDGE) * ratio;
    const below2 = streams === 0 ? 0 : Math.min(room / 2, streams * 12 * ratio);
    let y3 = EDGE * ratio;
    for (const track2 of tracks) {
      const height = track2.kind === "stream" ? below2 / streams : room - below2;
      drawStrip(context, scene, track2, tiles(track2.id), y3, height - (height > 4 * ratio ? ratio : 0), scale);
      y3 += height;
    }
  }
  function drawStrip(context, scene, track2, pieces, top, height, scale) {
    const thickness = Math.max(height / Math.max(track2.rows, 1), 1);
    let last = -1;
    for (let row = 0; row < track2.rows; row++) {
      const y3 = Math.round(top + row * height / track2.rows);
      if (y3 === last) {
        continue;
      }
      last = y3;
      for (const { tile } of pieces) {
        const fills = fillsOf(tile, scene);
        let edge = -1;
        for (let at = tile.rows[row] ?? 0; at < (tile.rows[row + 1] ?? 0); at++) {
          const from = Math.max(Math.round((tile.start[at] ?? 0) * scale), edge);
          const to = Math.max(Math.round((tile.stop[at] ?? 0) * scale), from + 1);
          if (to > edge) {
            context.fillStyle = scene.palette.fills[fills[at] ?? 0] ?? scene.palette.muted;
            context.fillRect(from, y3, to - from, Math.max(Math.round(thickness), 1));
            edge = to;
          }
        }
      }
    }
  }
  function drawBrush(context, { palette, ratio }, view, whole2, width, found2) {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.heat;
    let last = -1;
    for (const { start } of found2) {
      const x3 = Math.round(start / Math.max(whole2, 1) * width);
      if (x3 !== last) {
        context.fillRect(x3, 0, 1, 5);
        last = x3;
      }
    }
    const [from, to] = brushOf(view, whole2, width);
    context.fillStyle = palette.background;
    context.globalAlpha = 0.5;
    context.fillRect(0, 0, from, OVERVIEW);
    context.fillRect(to, 0, width - to, OVERVIEW);
    context.globalAlpha = 1;
    context.strokeStyle = palette.accent;
    context.lineWidth = 1;
    context.strokeRect(Math.round(from) + 0.5, 0.5, Math.max(Math.round(to - from) - 1, 1), OVERVIEW - 1);
  }
  function brushOf(view, whole2, width) {
    const all = { begin: 0, end: Math.max(whole2, 1) };
    const [from, to] = [toX(view.begin, all, width), toX(view.end, all, width)];
    const lack = Math.max(LEAST_BRUSH - (to - from), 0) / 2;
    return [from - lack, to + lack];
  }

  // src/pages/timeline/gestures.ts
  var STILL = 4;
  var WHEEL = 22e-4;
  var PINCH = 0.011;
  var LINE = 18;
  var PAGE = 400;
  function listenLanes(stage, area, canvas, meant) {
    const pressed = /* @__PURE__ */ new Map();
    let pinch;
    const placeOf = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const stretchTo = (from, to) => {
      const [one, other] = [from, to].map((x3) => Math.round(Math.min(Math.max(toNs(x3, stage.motion.view, stage.width), 0), stage.whole)));
      return { begin: Math.min(one, other), end: Math.max(one, other) };
    };
    const wheel = (event) => {
      const [x3] = placeOf(event);
      if (x3 < 0 && !event.ctrlKey || event.altKey) {
        return;
      }
      event.preventDefault();
      const unit2 = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? PAGE : 1;
      const [across, down2] = [event.deltaX * unit2, event.deltaY * unit2];
      if (!event.ctrlKey && !event.metaKey && (event.shiftKey || Math.abs(across) > Math.abs(down2))) {
        stage.motion.pan((across === 0 ? down2 : across) / stage.width, true);
      } else {
        const speed = event.ctrlKey && Math.abs(down2) < 50 ? PINCH : WHEEL;
        stage.motion.zoom(Math.exp(Math.min(Math.max(down2 * speed, -1), 1)), Math.min(Math.max(x3 / stage.width, 0), 1));
      }
      meant.hovered(void 0, 0, 0);
    };
    const down = (event) => {
      const [x3, y3] = placeOf(event);
      if (event.button !== 0 || x3 < 0 || x3 > stage.width || event.target.closest("button") !== null) {
        return;
      }
      area.setPointerCapture(event.pointerId);
      const mode = event.shiftKey || meant.marksByDrag() ? "mark" : "pan";
      pressed.set(event.pointerId, { x: x3, y: y3, beginX: x3, beginY: y3, mode, isMoved: false });
      pinch = pressed.size === 2 ? pinchOf([...pressed.values()]) : void 0;
    };
    const move = (event) => {
      const [x3, y3] = placeOf(event);
      const press = pressed.get(event.pointerId);
      if (press === void 0) {
        const isIn = x3 >= 0 && x3 <= stage.width && y3 >= 0 && y3 <= stage.height;
        meant.hovered(stage.point(isIn ? x3 : void 0, y3), x3, y3);
        return;
      }
      const [acrossBy, downBy] = [x3 - press.x, y3 - press.y];
      [press.x, press.y] = [x3, y3];
      if (pinch !== void 0 && pressed.size === 2) {
        const next = pinchOf([...pressed.values()]);
        stage.motion.zoom(pinch.apart / Math.max(next.apart, 1), next.middle / stage.width);
        stage.motion.pan((pinch.middle - next.middle) / stage.width, true);
        pinch = next;
        pressed.forEach((one) => one.isMoved = true);
        return;
      }
      press.isMoved ||= Math.abs(x3 - press.beginX) > STILL || Math.abs(y3 - press.beginY) > STILL;
      if (!press.isMoved) {
        return;
      }
      if (press.mode === "mark") {
        stage.mark(stretchTo(press.beginX, x3));
      } else {
        stage.motion.pan(-acrossBy / stage.width, true);
        area.scrollTop -= downBy;
      }
      stage.point(void 0);
      meant.hovered(void 0, 0, 0);
    };
    const up = (event) => {
      const press = pressed.get(event.pointerId);
      pressed.delete(event.pointerId);
      pinch = void 0;
      if (press === void 0 || event.type === "pointercancel") {
        stage.mark(void 0);
      } else if (!press.isMoved) {
        meant.clicked(stage.point(press.x, press.y));
      } else if (press.mode === "mark") {
        stage.mark(void 0);
        meant.marked(stretchTo(press.beginX, press.x));
      }
    };
    const leave = () => meant.hovered(stage.point(void 0), 0, 0);
    const twice = (event) => {
      const [x3, y3] = placeOf(event);
      const hit = x3 < 0 ? void 0 : stage.point(x3, y3);
      if (hit !== void 0) {
        meant.fitted(hit);
      }
    };
    return listening(area, { wheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave, dblclick: twice });
  }
  function pinchOf(pressed) {
    const [one, other] = pressed;
    return { apart: Math.abs((one?.x ?? 0) - (other?.x ?? 0)), middle: ((one?.x ?? 0) + (other?.x ?? 0)) / 2 };
  }
  var EDGE2 = 5;
  function listenOverview(stage, canvas) {
    let drag;
    const xOf = (event) => Math.min(Math.max(event.clientX - canvas.getBoundingClientRect().left, 0), stage.width);
    const nsOf = (x3) => x3 / stage.width * stage.whole;
    const down = (event) => {
      if (event.button !== 0) {
        return;
      }
      canvas.setPointerCapture(event.pointerId);
      const [x3, { goal }] = [xOf(event), stage.motion];
      const [from, to] = brushOf(goal, stage.whole, stage.width);
      const isWhole = spanOf(goal) > stage.whole * 0.999;
      const go2 = (begin, end) => stage.motion.go({ begin: Math.min(begin, end), end: Math.max(begin, end) }, true);
      if (!isWhole && Math.abs(x3 - from) < EDGE2) {
        drag = (at) => go2(nsOf(at), goal.end);
      } else if (!isWhole && Math.abs(x3 - to) < EDGE2) {
        drag = (at) => go2(goal.begin, nsOf(at));
      } else if (!isWhole && x3 > from && x3 < to) {
        drag = (at) => go2(goal.begin + nsOf(at - x3), goal.end + nsOf(at - x3));
      } else {
        const half = spanOf(goal) / 2;
        drag = (at) => Math.abs(at - x3) > STILL ? go2(nsOf(x3), nsOf(at)) : isWhole || go2(nsOf(x3) - half, nsOf(x3) + half);
        drag(x3);
      }
    };
    const move = (event) => drag?.(xOf(event));
    const up = () => drag = void 0;
    const wheel = (event) => {
      event.preventDefault();
      const place2 = (nsOf(event.clientX - canvas.getBoundingClientRect().left) - stage.motion.view.begin) / spanOf(stage.motion.view);
      stage.motion.zoom(Math.exp(Math.min(Math.max(event.deltaY * WHEEL, -1), 1)), Math.min(Math.max(place2, 0), 1));
    };
    return listening(canvas, { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, wheel });
  }
  function listening(element, listeners) {
    const all = Object.entries(listeners);
    all.forEach(([name, listener]) => element.addEventListener(name, listener, { passive: false }));
    return () => all.forEach(([name, listener]) => element.removeEventListener(name, listener));
  }

  // src/pages/timeline/drawCharts.ts
  function drawCharts(context, scene) {
    const { ratio, top, height } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const lane of seen(scene.lanes, top, top + height)) {
      if (lane.type === "counter") {
        drawChart(context, scene, lane);
      }
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
  }
  function drawChart(context, scene, lane) {
    const { view, width, palette, top } = scene;
    const scale = width / spanOf(view);
    const bottom = lane.y + lane.height - top;
    const high = (lane.height - lane.head - 2) / Math.max(lane.counter.largest, 1e-9);
    const tone = palette.charts[lane.counter.id % palette.charts.length] ?? palette.accent;
    for (const { tile, begin, end } of scene.charts(lane.counter.id)) {
      const left = Math.max((begin - view.begin) * scale, 0);
      const right = Math.min((end - view.begin) * scale, width);
      if (tile.at.length === 0 || right <= left) {
        continue;
      }
      const edge = new Path2D();
      const area = new Path2D();
      let [first, y3] = [-1, bottom];
      for (const [index, at] of tile.at.entries()) {
        if (at >= end) {
          break;
        }
        const x3 = Math.min(Math.max((at - view.begin) * scale, left), right);
        const next = bottom - Math.max(tile.value[index] ?? 0, 0) * high;
        if (first < 0 || x3 === first) {
          first = x3;
          edge.moveTo(x3, next);
          area.moveTo(x3, bottom);
        } else {
          edge.lineTo(x3, y3);
          area.lineTo(x3, y3);
        }
        edge.lineTo(x3, next);
        area.lineTo(x3, next);
        y3 = next;
        if (x3 >= right) {
          break;
        }
      }
      if (first < 0) {
        continue;
      }
      edge.lineTo(right, y3);
      area.lineTo(right, y3);
      area.lineTo(right, bottom);
      context.fillStyle = tone;
      context.globalAlpha = 0.22;
      context.fill(area);
      context.globalAlpha = 0.9;
      context.strokeStyle = tone;
      context.lineWidth = 1;
      context.stroke(edge);
      context.globalAlpha = 1;
    }
  }

  // src/pages/timeline/drawMarks.ts
  function drawMarks(context, scene, marks) {
    const { ratio, width, height, palette } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (marks.stretch !== void 0) {
      drawStretch(context, scene, toX(marks.stretch.begin, scene.view, width), toX(marks.stretch.end, scene.view, width));
    }
    const tracks = new Map(scene.lanes.flatMap((lane) => lane.type === "track" ? [[lane.track.id, lane]] : []));
    for (const spot of marks.found) {
      outline(context, scene, tracks, spot, palette.heat, 1);
    }
    if (marks.hovered !== void 0) {
      outline(context, scene, tracks, marks.hovered, palette.text, 1);
    }
    for (const link2 of marks.links) {
      drawArrow(context, scene, tracks, link2);
    }
    if (marks.chosen !== void 0) {
      outline(context, scene, tracks, marks.chosen, palette.text, 2);
    }
    if (marks.pointer !== void 0) {
      const x3 = Math.round(toX(marks.pointer, scene.view, width));
      context.fillStyle = palette.strong;
      context.fillRect(x3, 0, 1, height);
      drawValues(context, scene, marks.pointer, x3);
    }
  }
  function drawStretch(context, { height, width, palette }, from, to) {
    context.fillStyle = palette.accent;
    context.globalAlpha = 0.1;
    context.fillRect(from, 0, to - from, height);
    context.globalAlpha = 0.05;
    context.fillStyle = palette.text;
    context.fillRect(0, 0, Math.max(from, 0), height);
    context.fillRect(to, 0, Math.max(width - to, 0), height);
    context.globalAlpha = 1;
    context.fillStyle = palette.accent;
    context.fillRect(Math.round(from) - 1, 0, 1, height);
    context.fillRect(Math.round(to), 0, 1, height);
  }
  function outline(context, scene, tracks, spot, colour, thickness) {
    const lane = tracks.get(spot.track);
    if (lane === void 0) {
      return;
    }
    const { view, width, top, height } = scene;
    const [from, to] = [Math.max(toX(spot.start, view, width), -4), Math.min(toX(spot.end, view, width), width + 4)];
    const y3 = topOf(lane, spot.row) - top;
    if (to < 0 || from > width || y3 > height || y3 + lane.rowHeight < 0) {
      return;
    }
    context.strokeStyle = colour;
    context.lineWidth = thickness;
    const inset = thickness / 2;
    context.strokeRect(Math.round(from) + inset, Math.round(y3) + inset, Math.max(Math.round(to - from) - thickness - 1, 1), Math.max(lane.rowHeight - 1 - thickness, 1));
  }
  function topOf(lane, row) {
    return lane.y + lane.head + row * lane.rowHeight;
  }
  function drawArrow(context, scene, tracks, link2) {
    const [from, to] = [tracks.get(link2.fromTrack), tracks.get(link2.toTrack)];
    if (from === void 0 || to === void 0) {
      return;
    }
    const { view, width, top, palette } = scene;
    const far = 20 * width;
    const x0 = Math.min(Math.max(toX(link2.fromNs, view, width), -far), far);
    const x1 = Math.min(Math.max(toX(link2.toNs, view, width), -far), far);
    const y0 = topOf(from, link2.fromRow) + from.rowHeight / 2 - top;
    const y1 = topOf(to, link2.toRow) + to.rowHeight / 2 - top;
    const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 24), 160);
    context.strokeStyle = palette.heat;
    context.fillStyle = palette.heat;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.fill();
    context.beginPath();
    context.arc(x0, y0, 2.5, 0, 2 * Math.PI);
    context.fill();
  }
  function drawValues(context, scene, ns, x3) {
    const { palette, top, width } = scene;
    context.font = `11px ${palette.font}`;
    context.textBaseline = "middle";
    for (const lane of scene.lanes) {
      const value = valueOf(scene, lane, ns);
      if (lane.type !== "counter" || !lane.isOpen || value === void 0) {
        continue;
      }
      const words2 = valueWords(value, lane.counter.unit);
      const wide = context.measureText(words2).width + 8;
      const left = x3 + 6 + wide > width ? x3 - 6 - wide : x3 + 6;
      const y3 = lane.y + lane.head + 3 - top;
      context.fillStyle = palette.surface;
      context.fillRect(left, y3, wide, 16);
      context.fillStyle = palette.text;
      context.fillText(words2, left + 4, y3 + 8.5);
    }
  }
  function valueOf(scene, lane, ns) {
    if (lane.type !== "counter") {
      return void 0;
    }
    const piece = scene.charts(lane.counter.id).find(({ begin, end }) => ns >= begin && ns < end);
    return piece === void 0 ? void 0 : valueAt(piece.tile, ns);
  }

  // src/pages/timeline/drawRuler.ts
  var RULER = 24;
  function drawRuler(context, palette, view, width, ratio, marks) {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.background;
    context.fillRect(0, 0, width, RULER);
    context.font = `11px ${palette.font}`;
    context.textBaseline = "middle";
    if (marks.stretch !== void 0) {
      const [from, to] = [toX(marks.stretch.begin, view, width), toX(marks.stretch.end, view, width)];
      context.fillStyle = palette.accentSoft;
      context.fillRect(from, 0, to - from, RULER);
    }
    for (const { ns, label: label2 } of ticks(view, width)) {
      const x3 = Math.round(toX(ns, view, width));
      context.fillStyle = palette.strong;
      context.fillRect(x3, RULER - 7, 1, 7);
      context.fillStyle = palette.muted;
      context.fillText(label2, x3 + 4, RULER / 2);
    }
    if (marks.stretch !== void 0) {
      const middle = toX((marks.stretch.begin + marks.stretch.end) / 2, view, width);
      flag2(context, palette, duration(marks.stretch.end - marks.stretch.begin), middle, width, palette.accentSoft);
    }
    if (marks.pointer !== void 0) {
      flag2(context, palette, exact(marks.pointer), toX(marks.pointer, view, width), width, palette.surface);
    }
  }
  function flag2(context, palette, words2, x3, width, fill) {
    const wide = context.measureText(words2).width + 12;
    const left = Math.min(Math.max(x3 - wide / 2, 0), width - wide);
    context.fillStyle = fill;
    context.fillRect(left, 2, wide, RULER - 4);
    context.strokeStyle = palette.strong;
    context.lineWidth = 1;
    context.strokeRect(Math.round(left) + 0.5, 2.5, Math.round(wide) - 1, RULER - 5);
    context.fillStyle = palette.text;
    context.fillText(words2, left + 6, RULER / 2);
  }

  // src/pages/timeline/grid.ts
  var TILE_PIXELS = 512;
  var TOP = 44;
  function levelOf(view, width) {
    return Math.min(Math.max(Math.floor(Math.log2(spanOf(view) / Math.max(width, 1))), 0), TOP);
  }
  function tileSpan(level) {
    return TILE_PIXELS * 2 ** level;
  }
  function tilesIn(view, level, whole2) {
    const span = tileSpan(level);
    const most = Math.max(Math.ceil(whole2 / span), 1);
    return [Math.min(Math.max(Math.floor(view.begin / span), 0), most - 1), Math.min(Math.max(Math.ceil(view.end / span), 1), most)];
  }
  var UP = 14;
  var DOWN = 3;
  function covering(view, level, whole2, lookup) {
    const [first, last] = tilesIn(view, level, whole2);
    const pieces = [];
    for (let index = first; index < last; index++) {
      cover(level, index, lookup, pieces);
    }
    return pieces;
  }
  function cover(level, index, lookup, pieces) {
    const [begin, end] = [index * tileSpan(level), (index + 1) * tileSpan(level)];
    for (let up = 0; up <= UP && level + up <= TOP; up++) {
      const tile = lookup(level + up, Math.floor(index / 2 ** up));
      if (tile !== void 0) {
        pieces.push({ tile, begin, end });
        return;
      }
    }
    below(level, index, lookup, pieces, DOWN);
  }
  function below(level, index, lookup, pieces, deeper) {
    if (level === 0 || deeper === 0) {
      return;
    }
    const span = tileSpan(level - 1);
    for (const half of [2 * index, 2 * index + 1]) {
      const tile = lookup(level - 1, half);
      if (tile === void 0) {
        below(level - 1, half, lookup, pieces, deeper - 1);
      } else {
        pieces.push({ tile, begin: half * span, end: (half + 1) * span });
      }
    }
  }

  // src/pages/timeline/hit.ts
  var REACH = 3;
  function hitAt(ground, x3, y3) {
    const lane = laneAt(ground.lanes, y3);
    if (lane?.type !== "track") {
      return void 0;
    }
    const row = rowAt(lane, y3);
    const ns = toNs(x3, ground.view, ground.width);
    const piece = ground.tiles(lane.track.id).find(({ begin, end }) => ns >= begin && ns < end);
    if (row < 0 || piece === void 0) {
      return void 0;
    }
    const at = sliceAt(piece.tile, row, ns, REACH * spanOf(ground.view) / ground.width);
    return at < 0 ? void 0 : hitOf(lane, piece.tile, row, at);
  }
  function hitOf(lane, tile, row, at) {
    return {
      track: lane.track.id,
      row,
      start: tile.start[at] ?? 0,
      end: tile.stop[at] ?? 0,
      name: tile.name[at] ?? 0,
      kind: tile.kind[at] ?? 0,
      place: tile.place[at] ?? -1,
      slice: tile.slice[at] ?? -1,
      count: tile.count[at] ?? 1,
      busy: tile.busy[at] ?? 0
    };
  }
  function beside(ground, from, direction) {
    const lane = ground.lanes.find((one) => one.type === "track" && one.track.id === from.track);
    if (lane === void 0) {
      return void 0;
    }
    const pieces = ground.tiles(lane.track.id);
    const row = direction === "above" ? from.row - 1 : direction === "below" ? from.row + 1 : from.row;
    const hits = pieces.flatMap(({ tile }) => rowHits(lane, tile, row));
    switch (direction) {
      case "next":
        return nearest(hits.filter(({ start }) => start >= from.end), (hit) => hit.start - from.end);
      case "previous":
        return nearest(hits.filter(({ end }) => end <= from.start), (hit) => from.start - hit.end);
      case "above":
        return hits.find(({ start, end }) => start <= from.start && end >= from.end);
      case "below":
        return nearest(hits.filter(({ start, end }) => start >= from.start && end <= from.end), (hit) => hit.start);
    }
  }
  function rowHits(lane, tile, row) {
    if (row < 0 || row + 1 >= tile.rows.length) {
      return [];
    }
    const [first, last] = [tile.rows[row] ?? 0, tile.rows[row + 1] ?? 0];
    return Array.from({ length: last - first }, (_3, index) => hitOf(lane, tile, row, first + index)).filter(({ slice }) => slice >= 0);
  }
  function nearest(hits, distance) {
    return hits.reduce((best, hit) => best === void 0 || distance(hit) < distance(best) ? hit : best, void 0);
  }
  function middleOf(ground) {
    const middle = (ground.view.begin + ground.view.end) / 2;
    for (const lane of ground.lanes) {
      if (lane.type === "track" && lane.isOpen && lane.track.kind !== "steps") {
        for (const { tile } of ground.tiles(lane.track.id)) {
          const at = firstAfter(tile, 0, middle);
          if (at < (tile.rows[1] ?? 0) && (tile.slice[at] ?? -1) >= 0) {
            return hitOf(lane, tile, 0, at);
          }
        }
      }
    }
    return void 0;
  }

  // src/pages/timeline/labels.ts
  var ELLIPSIS = "\u2026";
  var Labels = class {
    constructor(measure) {
      this.measure = measure;
    }
    measure;
    widths = /* @__PURE__ */ new Map();
    whole = /* @__PURE__ */ new Map();
    /** The text, or as much of its beginning as fits with an ellipsis; "" where not even some characters fit. */
    fitted(text2, width) {
      if (this.width(text2) <= width) {
        return text2;
      }
      let rest = width - this.of(ELLIPSIS);
      let shown = "";
      for (const char of text2) {
        rest -= this.of(char);
        if (rest < 0) {
          break;
        }
        shown += char;
      }
      return shown.length < 2 ? "" : `${shown.trimEnd()}${ELLIPSIS}`;
    }
    width(text2) {
      let width = this.whole.get(text2);
      if (width === void 0) {
        width = 0;
        for (const char of text2.length > 400 ? text2.slice(0, 400) : text2) {
          width += this.of(char);
        }
        this.whole.set(text2, width);
      }
      return width;
    }
    of(char) {
      let width = this.widths.get(char);
      if (width === void 0) {
        width = this.measure(char);
        this.widths.set(char, width);
      }
      return width;
    }
  };

  // src/pages/timeline/cache.ts
  function keyOf(level, index) {
    return level * 2 ** 45 + index;
  }
  var TileCache = class {
    constructor(most, sizeOf) {
      this.most = most;
      this.sizeOf = sizeOf;
    }
    most;
    sizeOf;
    tracks = /* @__PURE__ */ new Map();
    size = 0;
    clock = 0;
    get(track2, level, index) {
      const kept3 = this.tracks.get(track2)?.get(keyOf(level, index));
      if (kept3 === void 0) {
        return void 0;
      }
      kept3.seen = this.clock;
      return kept3.tile;
    }
    has(track2, level, index) {
      return this.tracks.get(track2)?.has(keyOf(level, index)) === true;
    }
    set(track2, level, index, tile) {
      const tiles = this.tracks.get(track2) ?? /* @__PURE__ */ new Map();
      this.tracks.set(track2, tiles);
      this.size -= tiles.get(keyOf(level, index))?.size ?? 0;
      const size = 1 + this.sizeOf(tile);
      tiles.set(keyOf(level, index), { tile, size, seen: this.clock });
      this.size += size;
      if (this.size > this.most) {
        this.shrink();
      }
    }
    /** What is looked at from now on stays longer than what was looked at before. */
    tick() {
      this.clock++;
    }
    shrink() {
      const all = [...this.tracks.values()].flatMap((tiles) => [...tiles].map(([key, kept3]) => ({ tiles, key, kept: kept3 })));
      all.sort((one, other) => one.kept.seen - other.kept.seen);
      for (const { tiles, key, kept: kept3 } of all) {
        if (this.size <= this.most * 0.75 || kept3.seen === this.clock) {
          return;
        }
        tiles.delete(key);
        this.size -= kept3.size;
      }
    }
  };

  // src/pages/timeline/names.ts
  var Names = class {
    texts = [];
    /** A number that is the same for a name in each session, which colours are taken by. */
    hashes = [];
    numbers = /* @__PURE__ */ new Map();
    wanted = "";
    found = [];
    /** The number of a name. */
    number(text2) {
      let number = this.numbers.get(text2);
      if (number === void 0) {
        number = this.texts.length;
        this.numbers.set(text2, number);
        this.texts.push(text2);
        this.hashes.push(hashOf(text2));
      }
      return number;
    }
    /** Looks for names that hold a text, whatever its case. */
    look(text2) {
      if (text2.toLowerCase() !== this.wanted) {
        this.wanted = text2.toLowerCase();
        this.found = [];
      }
    }
    isFound(number) {
      return this.found[number] ??= (this.texts[number] ?? "").toLowerCase().includes(this.wanted);
    }
  };
  function hashOf(text2) {
    let hash = 2166136261;
    for (const char of text2.replace(/\d+/g, "").slice(0, 200)) {
      hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 16777619) >>> 0;
    }
    return hash;
  }

  // src/pages/timeline/loader.ts
  var AT_ONCE = 3;
  var AHEAD_AT_ONCE = 1;
  var MOST_SLICES = 15e5;
  var MOST_POINTS = 1e6;
  var TRACKS_AT_ONCE = 64;
  var AGAIN_MS2 = 4e3;
  var Loader = class {
    constructor(whole2, counterIds, ask2, came, failed) {
      this.whole = whole2;
      this.counterIds = counterIds;
      this.ask = ask2;
      this.came = came;
      this.failed = failed;
    }
    whole;
    counterIds;
    ask;
    came;
    failed;
    names = new Names();
    tiles = new TileCache(MOST_SLICES, (tile) => tile.start.length);
    counters = new TileCache(MOST_POINTS, (tile) => tile.at.length);
    underWay = /* @__PURE__ */ new Set();
    isEnded = false;
    wishes = [];
    ahead = [];
    /** What is seen: a view on some tracks. `extra` is another view of it: the overview. */
    want(view, width, tracks, extra) {
      this.tiles.tick();
      this.counters.tick();
      const level = levelOf(view, width);
      this.wishes = [...this.missing(view, level, tracks), ...this.missing(extra[0], levelOf(extra[0], extra[1]), extra[2])];
      this.ahead = this.wishes.length > 0 ? [] : this.next(view, level, tracks);
      this.pump();
    }
    end() {
      this.isEnded = true;
    }
    /** Whether all that is seen is there. */
    get isIdle() {
      return this.wishes.length === 0 && this.underWay.size === 0;
    }
    next(view, level, tracks) {
      const middle = (view.begin + view.end) / 2;
      const views = [
        [panned(view, spanOf(view) * 0.6, this.whole), level],
        [panned(view, -spanOf(view) * 0.6, this.whole), level],
        [zoomed(view, 0.5, middle, this.whole), Math.max(level - 1, 0)],
        [zoomed(view, 2, middle, this.whole), level + 1]
      ];
      return views.flatMap(([one, at]) => this.missing(one, at, tracks));
    }
    missing(view, level, tracks) {
      const [first, last] = tilesIn(view, level, this.whole);
      const wishes = [];
      const middle = (first + last - 1) / 2;
      const indices = Array.from({ length: last - first }, (_3, at) => first + at);
      for (const index of indices.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle))) {
        const wanted = tracks.filter((track2) => !this.tiles.has(track2, level, index) && !this.underWay.has(`${level}/${index}/${track2}`));
        const lacksCounters = this.counterIds.some((id) => !this.counters.has(id, level, index)) && !this.underWay.has(`${level}/${index}/`);
        for (let at = 0; at < wanted.length || at === 0 && lacksCounters; at += TRACKS_AT_ONCE) {
          wishes.push({ level, index, tracks: wanted.slice(at, at + TRACKS_AT_ONCE) });
        }
      }
      return wishes;
    }
    pump() {
      const running = new Set([...this.underWay].map((key) => key.slice(0, key.lastIndexOf("/")))).size;
      for (let free = AT_ONCE - running; free > 0 && this.wishes.length > 0; free--) {
        this.start(this.wishes.shift());
      }
      for (let free = AHEAD_AT_ONCE - running; free > 0 && this.wishes.length === 0 && this.ahead.length > 0; free--) {
        this.start(this.ahead.shift());
      }
    }
    start(wish) {
      if (wish === void 0) {
        return;
      }
      const { level, index, tracks } = wish;
      const keys = [...tracks.map((track2) => `${level}/${index}/${track2}`), `${level}/${index}/`];
      const done = () => keys.forEach((key) => this.underWay.delete(key));
      keys.forEach((key) => this.underWay.add(key));
      const begin = index * tileSpan(level);
      this.ask(begin, begin + tileSpan(level), TILE_PIXELS, tracks).then(
        (window3) => {
          done();
          if (!this.isEnded) {
            this.keep(window3, level, index);
            this.failed("");
            this.came();
          }
        },
        (error) => {
          setTimeout(() => {
            done();
            if (!this.isEnded) {
              this.came();
            }
          }, AGAIN_MS2);
          if (!this.isEnded) {
            this.failed(error instanceof Error ? error.message : String(error));
          }
        }
      );
    }
    keep(window3, level, index) {
      const numbers = numbered(window3, this.names);
      for (const track2 of window3.tracks) {
        this.tiles.set(track2.id, level, index, tileOf(window3, track2, numbers));
      }
      for (const counter2 of window3.counters) {
        this.counters.set(counter2.id, level, index, counterTileOf(window3, counter2));
      }
    }
  };

  // src/pages/timeline/motion.ts
  var PACE_MS = 55;
  var HOLD_MS = 220;
  var PAN_RATE = 0.9;
  var ZOOM_RATE = 3;
  var LONGEST_FRAME_MS = 50;
  var Motion = class {
    constructor(view, whole2, moved) {
      this.whole = whole2;
      this.moved = moved;
      this.view = clamped(view, whole2);
      this.goal = this.view;
    }
    whole;
    moved;
    view;
    goal;
    last;
    held = /* @__PURE__ */ new Map();
    reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
    /** Goes to a view; at once if it is dragged there. */
    go(view, isAtOnce = false) {
      this.goal = clamped(view, this.whole);
      if (isAtOnce || this.reduced.matches) {
        this.view = this.goal;
      }
      this.moved();
    }
    /** Zooms so that what is at a part of the width stays there; a factor above 1 shows more time. */
    zoom(factor, place2) {
      const at = toNs(place2, this.view, 1);
      const span = Math.min(Math.max(spanOf(this.goal) * factor, LEAST_SPAN_NS), Math.max(this.whole, LEAST_SPAN_NS));
      this.go({ begin: at - place2 * span, end: at + (1 - place2) * span });
    }
    /** Pans by a part of the width. */
    pan(part2, isAtOnce = false) {
      this.go(panned(this.goal, part2 * spanOf(this.goal), this.whole), isAtOnce);
    }
    hold(key) {
      if (!this.held.has(key)) {
        this.held.set(key, performance.now());
        this.moved();
      }
    }
    release(key) {
      if (key === void 0) {
        this.held.clear();
      } else {
        this.held.delete(key);
      }
    }
    /** Moves on; whether there is more of the way. `width` is that of the screen in pixels. */
    advance(now, width, place2 = 0.5) {
      const passed = this.last === void 0 ? 16 : Math.min(now - this.last, LONGEST_FRAME_MS);
      for (const [key, since] of this.held) {
        if (now - since > HOLD_MS) {
          this.carry(key, passed / 1e3, place2);
        }
      }
      if (this.view !== this.goal) {
        const isThere = this.reduced.matches || isNear(this.view, this.goal, width);
        this.view = isThere ? this.goal : between(this.view, this.goal, 1 - Math.exp(-passed / PACE_MS));
      }
      const isMoving = this.view !== this.goal || this.held.size > 0;
      this.last = isMoving ? now : void 0;
      return isMoving;
    }
    carry(key, seconds, place2) {
      switch (key) {
        case "in": {
          this.zoom(2 ** (-ZOOM_RATE * seconds), place2);
          return;
        }
        case "out": {
          this.zoom(2 ** (ZOOM_RATE * seconds), place2);
          return;
        }
        case "left": {
          this.pan(-PAN_RATE * seconds);
          return;
        }
        case "right": {
          this.pan(PAN_RATE * seconds);
          return;
        }
      }
    }
  };

  // src/pages/timeline/stage.ts
  var NOTHING = {
    choices: { turned: /* @__PURE__ */ new Set(), filter: "", hasHeads: false },
    colouring: "kind",
    sought: void 0,
    chosen: void 0,
    links: [],
    found: [],
    stretch: void 0
  };
  var Stage = class {
    constructor(of, at, ask2, told, view) {
      this.of = of;
      this.at = at;
      this.told = told;
      this.motion = new Motion(view, Math.max(of.endNs, 1), () => this.request());
      const counters = of.counters.map(({ id }) => id);
      this.loader = new Loader(this.whole, counters, ask2, () => this.redraw(), (message) => told.failed(message));
      this.palette = paletteOf(document.documentElement);
      this.labels = this.newLabels();
      const sizes = new ResizeObserver(() => this.resize());
      sizes.observe(at.base);
      const scrolled = () => this.redraw();
      at.scroller.addEventListener("scroll", scrolled, { passive: true });
      const repaint = () => {
        this.palette = paletteOf(document.documentElement);
        this.stripOf = [];
        this.redraw();
      };
      this.ends.push(watchTheme(repaint), () => sizes.disconnect(), () => at.scroller.removeEventListener("scroll", scrolled));
      this.resize();
    }
    of;
    at;
    told;
    motion;
    loader;
    lanes = [];
    shown = NOTHING;
    width = 1;
    height = 1;
    palette;
    labels;
    ratio = 1;
    frame = 0;
    isStale = true;
    hovered;
    pointerX;
    /** While one is being drawn with the pointer. */
    marking;
    settledAt;
    strip = document.createElement("canvas");
    stripOf = [];
    ends = [];
    get whole() {
      return Math.max(this.of.endNs, 1);
    }
    /** Where the pointer is, as a part of the width; the middle where it is elsewhere. */
    get pointerPlace() {
      return this.pointerX === void 0 ? 0.5 : this.pointerX / this.width;
    }
    scroll(by) {
      this.at.scroller.scrollTop += by;
    }
    get top() {
      return this.at.scroller.scrollTop;
    }
    end() {
      cancelAnimationFrame(this.frame);
      this.loader.end();
      this.ends.forEach((end) => end());
    }
    show(shown) {
      if (shown.choices !== this.shown.choices || this.lanes.length === 0) {
        this.lanes = lanesOf(this.of, shown.choices);
      }
      this.loader.names.look(shown.sought?.text ?? "");
      this.shown = shown;
      this.redraw();
    }
    /** The pointer is at a place of the drawn part; undefined when it left. */
    point(x3, y3 = 0) {
      this.pointerX = x3;
      this.hovered = x3 === void 0 ? void 0 : hitAt(this.scene(), x3, y3 + this.top);
      this.request();
      return this.hovered;
    }
    mark(stretch) {
      this.marking = stretch;
      this.request();
    }
    beside(from, direction) {
      return from === void 0 ? middleOf(this.scene()) : beside(this.scene(), from, direction);
    }
    /** Scrolls until a row of a track is seen. */
    reveal({ track: track2, row }) {
      const lane = this.lanes.find((one) => one.type === "track" && one.track.id === track2);
      if (lane?.type === "track") {
        const y3 = lane.y + lane.head + row * lane.rowHeight;
        if (y3 < this.top + 4 || y3 + lane.rowHeight > this.top + this.height - 4) {
          this.at.scroller.scrollTop = y3 - this.height / 3;
        }
      }
    }
    redraw() {
      this.isStale = true;
      this.request();
    }
    request() {
      if (this.frame === 0) {
        this.frame = requestAnimationFrame((now) => this.draw(now));
      }
    }
    draw(now) {
      this.frame = 0;
      const before = this.motion.view;
      const isMoving = this.motion.advance(now, this.width, this.pointerPlace);
      if (this.motion.view !== before) {
        this.isStale = true;
      }
      const scene = this.scene();
      if (this.isStale) {
        this.isStale = false;
        this.want(scene);
        const context = this.at.base.getContext("2d", { alpha: false });
        if (context !== null) {
          drawTracks(context, scene);
          drawCharts(context, scene);
        }
      }
      this.drawAbove(scene);
      if (isMoving) {
        this.request();
      } else if (this.motion.view !== this.settledAt) {
        this.settledAt = this.motion.view;
        this.told.settled(this.motion.view);
      }
    }
    want(scene) {
      const goal = this.motion.goal;
      const tracks = seen(scene.lanes, scene.top - 200, scene.top + scene.height + 200);
      const wanted = tracks.flatMap((lane) => lane.type === "track" && lane.track.slices > 0 ? [lane.track.id] : []);
      const whole2 = { begin: 0, end: this.whole };
      this.loader.want(goal, this.width, wanted, [whole2, this.width, overviewOf(this.of).map(({ id }) => id)]);
    }
    drawAbove(scene) {
      const marks = {
        hovered: this.hovered,
        chosen: this.shown.chosen,
        found: this.shown.found,
        links: this.shown.links,
        stretch: this.marking ?? this.shown.stretch,
        pointer: this.pointerX === void 0 ? void 0 : toNs(this.pointerX, scene.view, this.width)
      };
      const [above, ruler, overview2] = [this.at.marks, this.at.ruler, this.at.overview].map((canvas) => canvas.getContext("2d"));
      if (above != null && ruler != null && overview2 != null) {
        drawMarks(above, scene, marks);
        drawRuler(ruler, this.palette, scene.view, this.width, this.ratio, marks);
        this.drawStrip(scene);
        overview2.setTransform(1, 0, 0, 1, 0, 0);
        overview2.drawImage(this.strip, 0, 0);
        drawBrush(overview2, scene, scene.view, this.whole, this.width, marks.found);
      }
    }
    drawStrip(scene) {
      const tracks = overviewOf(this.of);
      const whole2 = { begin: 0, end: this.whole };
      const pieces = new Map(tracks.map(({ id }) => [id, this.pieces(id, whole2)]));
      const key = [this.palette, scene.colouring, this.width, ...[...pieces.values()].flatMap((list2) => list2.map(({ tile }) => tile))];
      if (key.length === this.stripOf.length && key.every((part2, at) => part2 === this.stripOf[at])) {
        return;
      }
      this.stripOf = key;
      const context = this.strip.getContext("2d", { alpha: false });
      if (context !== null) {
        drawWhole(context, scene, this.width, tracks, (track2) => pieces.get(track2) ?? []);
      }
    }
    scene() {
      const view = this.motion.view;
      const level = levelOf(view, this.width);
      const { counters } = this.loader;
      return {
        of: this.of,
        view,
        width: this.width,
        height: this.height,
        ratio: this.ratio,
        top: this.top,
        lanes: this.lanes,
        palette: this.palette,
        colouring: this.shown.colouring,
        names: this.loader.names,
        labels: this.labels,
        sought: this.shown.sought,
        tiles: (track2) => this.pieces(track2, view),
        charts: (counter2) => covering(view, level, this.whole, (at, index) => counters.get(counter2, at, index))
      };
    }
    pieces(track2, view) {
      const { tiles } = this.loader;
      return covering(view, levelOf(view, this.width), this.whole, (level, index) => tiles.get(track2, level, index));
    }
    newLabels() {
      const context = document.createElement("canvas").getContext("2d");
      if (context !== null) {
        context.font = `11px ${this.palette.font}`;
      }
      return new Labels((text2) => context?.measureText(text2).width ?? 7);
    }
    resize() {
      const { base, marks, ruler, overview: overview2 } = this.at;
      this.ratio = window.devicePixelRatio;
      this.width = Math.max(base.clientWidth, 1);
      this.height = Math.max(base.clientHeight, 1);
      const sizes = [
        [base, this.height],
        [marks, this.height],
        [ruler, RULER],
        [overview2, OVERVIEW],
        [this.strip, OVERVIEW]
      ];
      for (const [canvas, height] of sizes) {
        canvas.width = Math.round(this.width * this.ratio);
        canvas.height = Math.round(height * this.ratio);
      }
      this.stripOf = [];
      this.redraw();
    }
  };

  // src/pages/timeline/Titles.tsx
  function Titles({ lanes, turn }) {
    return /* @__PURE__ */ u3("div", { class: "tall", style: { height: `${heightOf(lanes)}px` }, children: lanes.map((lane) => /* @__PURE__ */ u3(
      "div",
      {
        class: `lanetitle ${lane.head > 0 ? "above" : ""}`,
        style: { top: `${lane.y}px`, height: `${lane.head > 0 ? lane.head : lane.height}px` },
        children: [
          canTurn(lane) ? /* @__PURE__ */ u3("button", { type: "button", "aria-expanded": lane.isOpen, title: `${lane.title} \xB7 ${about(lane)}`, onClick: () => turn(lane.key), children: [
            /* @__PURE__ */ u3(Triangle, {}),
            /* @__PURE__ */ u3("span", { children: lane.title })
          ] }) : /* @__PURE__ */ u3("span", { class: "fixed", title: `${lane.title} \xB7 ${about(lane)}`, children: /* @__PURE__ */ u3("span", { children: lane.title }) }),
          lane.height >= 36 && lane.head === 0 && /* @__PURE__ */ u3("small", { children: about(lane) })
        ]
      },
      lane.key
    )) });
  }
  function canTurn(lane) {
    return lane.type === "counter" || lane.track.rows > 1;
  }
  function about(lane) {
    if (lane.type === "counter") {
      return `up to ${valueWords(lane.counter.largest, lane.counter.unit)}`;
    }
    const { slices, isTraining } = lane.track;
    return `${isTraining ? "trains \xB7 " : ""}${count(slices)} ${slices === 1 ? "slice" : "slices"}`;
  }
  function Triangle() {
    return /* @__PURE__ */ u3("svg", { viewBox: "0 0 8 8", width: "8", height: "8", "aria-hidden": "true", children: /* @__PURE__ */ u3("path", { d: "M2 1l4 3-4 3z" }) });
  }

  // src/pages/timeline/Tooltip.tsx
  var APART = 14;
  function Tooltip({ at: { hit, x: x3, y: y3 }, of, names }) {
    const box = A2(null);
    _2(() => {
      const element = box.current;
      const parent = element?.offsetParent;
      if (element != null && parent != null) {
        const left = x3 + APART + element.offsetWidth > parent.clientWidth ? x3 - APART - element.offsetWidth : x3 + APART;
        const top = y3 + APART + element.offsetHeight > parent.clientHeight ? y3 - APART - element.offsetHeight : y3 + APART;
        element.style.transform = `translate(${Math.max(left, 2)}px, ${Math.max(top, 2)}px)`;
      }
    });
    const length = hit.end - hit.start;
    const place2 = of.places[hit.place];
    const kind = of.kinds[hit.kind] ?? "other";
    const isJoined = hit.count > 1;
    return /* @__PURE__ */ u3("div", { class: "tip", ref: box, role: "tooltip", children: [
      /* @__PURE__ */ u3("strong", { children: names.texts[hit.name] ?? "" }),
      /* @__PURE__ */ u3("span", { children: [
        duration(length),
        /* @__PURE__ */ u3("span", { class: "muted", children: isJoined ? ` \xB7 ${count(hit.count)} slices, ${share(hit.busy / Math.max(length, 1))} covered; zoom in to part them` : ` \xB7 ${kind}` })
      ] }),
      place2 !== void 0 && /* @__PURE__ */ u3("span", { class: "muted", children: place2.title })
    ] });
  }

  // src/pages/timeline/StageView.tsx
  var NARROW = 640;
  function StageView(props) {
    const { of, choice, shown, turned, filter } = props;
    const source = useSource();
    const parts = {
      area: A2(null),
      base: A2(null),
      marks: A2(null),
      ruler: A2(null),
      overview: A2(null)
    };
    const [isNarrow, setNarrow] = d2(false);
    const [pointed, point] = d2();
    const [problem, setProblem] = d2("");
    const stage = A2(void 0);
    const latest = A2(props);
    latest.current = props;
    const choices = T2(() => ({ turned, filter, hasHeads: isNarrow }), [turned, filter, isNarrow]);
    const lanes = T2(() => lanesOf(of, choices), [of, choices]);
    h2(() => {
      const [area, base, marks, ruler, overview2] = [parts.area, parts.base, parts.marks, parts.ruler, parts.overview].map((part2) => part2.current);
      if (area == null || base == null || marks == null || ruler == null || overview2 == null) {
        return void 0;
      }
      const made = new Stage(
        of,
        { scroller: area, base, marks, ruler, overview: overview2 },
        (begin, end, pixels, tracks) => patiently(source, questions.timeline_window, { ...choice, begin, end, pixels, tracks: tracks.length === 0 ? "none" : tracks.join(",") }),
        {
          settled: (view) => latest.current.settled(view),
          failed: setProblem
        },
        props.view
      );
      stage.current = made;
      props.made(made);
      const width = new ResizeObserver(() => setNarrow(area.clientWidth < NARROW));
      width.observe(area);
      const ends = [
        listenLanes(made, area, base, {
          hovered: (hit, x3, y3) => point(hit === void 0 ? void 0 : { hit, x: x3 + base.offsetLeft, y: y3 + base.offsetTop }),
          clicked: (hit) => latest.current.clicked(hit),
          fitted: ({ start, end }) => made.motion.go(around(start, end, made.whole)),
          marked: (stretch) => latest.current.marked(stretch),
          marksByDrag: () => latest.current.isMarking
        }),
        listenOverview(made, overview2),
        () => width.disconnect(),
        () => made.end()
      ];
      return () => {
        props.made(void 0);
        ends.forEach((end) => end());
      };
    }, [of, source]);
    h2(() => stage.current?.show({ ...shown, choices }), [choices, ...Object.values(shown)]);
    return /* @__PURE__ */ u3("div", { class: `stage ${isNarrow ? "narrow" : ""} ${props.isMarking ? "marking" : ""}`, children: [
      /* @__PURE__ */ u3("canvas", { class: "overview", ref: parts.overview, role: "img", "aria-label": "The whole timeline; drag to choose what is seen" }),
      /* @__PURE__ */ u3("canvas", { class: "ruler", ref: parts.ruler, "aria-hidden": "true" }),
      /* @__PURE__ */ u3("div", { class: "viewport", children: [
        /* @__PURE__ */ u3("canvas", { class: "base", ref: parts.base, "aria-hidden": "true" }),
        /* @__PURE__ */ u3("canvas", { class: "base", ref: parts.marks, "aria-hidden": "true" }),
        /* @__PURE__ */ u3(
          "div",
          {
            class: "lanes",
            ref: parts.area,
            tabIndex: 0,
            role: "application",
            "aria-label": "Timeline",
            "aria-description": "Zoom with w and s, move with a and d, choose slices with full stop and comma; press ? for all keys.",
            children: /* @__PURE__ */ u3(Titles, { lanes, turn: props.turn })
          }
        ),
        pointed !== void 0 && stage.current !== void 0 && /* @__PURE__ */ u3(Tooltip, { at: pointed, of, names: stage.current.loader.names }),
        problem !== "" && /* @__PURE__ */ u3("p", { class: "problem", role: "alert", children: problem })
      ] }),
      /* @__PURE__ */ u3("p", { class: "unseen", role: "status", children: props.describe })
    ] });
  }

  // src/pages/timeline/Toolbar.tsx
  function Toolbar(props) {
    return /* @__PURE__ */ u3("div", { class: "tools", role: "toolbar", "aria-label": "Timeline", children: [
      /* @__PURE__ */ u3(Search, { ...props }),
      /* @__PURE__ */ u3("span", { class: "group", children: [
        /* @__PURE__ */ u3("button", { type: "button", title: "Zoom in (w)", "aria-label": "Zoom in", onClick: () => props.zoom(0.5), children: "+" }),
        /* @__PURE__ */ u3("button", { type: "button", title: "Zoom out (s)", "aria-label": "Zoom out", onClick: () => props.zoom(2), children: "\u2212" }),
        /* @__PURE__ */ u3("button", { type: "button", title: "Show the whole (0)", onClick: props.whole, children: "All" })
      ] }),
      /* @__PURE__ */ u3(
        "button",
        {
          type: "button",
          "aria-pressed": props.isMarking,
          title: "Drag marks a stretch of time (or: hold shift and drag)",
          onClick: () => props.setMarking(!props.isMarking),
          children: "Mark"
        }
      ),
      /* @__PURE__ */ u3("label", { class: "field", children: [
        /* @__PURE__ */ u3("span", { children: "Kernels by" }),
        /* @__PURE__ */ u3("select", { value: props.colouring, onChange: (event) => props.colour(event.currentTarget.value), children: [
          /* @__PURE__ */ u3("option", { value: "kind", children: "kind" }),
          /* @__PURE__ */ u3("option", { value: "line", children: "line" }),
          /* @__PURE__ */ u3("option", { value: "name", children: "name" })
        ] })
      ] }),
      /* @__PURE__ */ u3(
        "input",
        {
          class: "filter",
          type: "search",
          placeholder: "Filter tracks",
          "aria-label": "Filter tracks by their titles",
          value: props.filter,
          onInput: (event) => props.setFilter(event.currentTarget.value)
        }
      ),
      /* @__PURE__ */ u3("span", { class: "grow" }),
      /* @__PURE__ */ u3("button", { type: "button", class: "plain", onClick: props.perfetto, children: "Perfetto\u2026" }),
      /* @__PURE__ */ u3("button", { type: "button", class: "plain", title: "Keys (?)", "aria-label": "Keys", onClick: props.help, children: "?" })
    ] });
  }
  var PAUSE_MS = 180;
  function Search({ finder, find, seek, step }) {
    const [text2, setText] = d2(find);
    const timer = A2(0);
    h2(() => setText(find), [find]);
    const typed = (value) => {
      setText(value);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => seek(value), PAUSE_MS);
    };
    const pressed = (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        if (text2 === find) {
          step(!event.shiftKey);
        } else {
          window.clearTimeout(timer.current);
          seek(text2);
        }
      }
    };
    const { matches: matches2 } = finder;
    return /* @__PURE__ */ u3("span", { class: "finder", role: "search", children: [
      /* @__PURE__ */ u3(
        "input",
        {
          id: "timeline-search",
          type: "search",
          placeholder: finder.title !== "" && find === "" ? finder.title : "Search slices  /",
          "aria-label": "Search slices by name",
          value: text2,
          onInput: (event) => typed(event.currentTarget.value),
          onKeyDown: pressed
        }
      ),
      finder.title !== "" && /* @__PURE__ */ u3(S, { children: [
        /* @__PURE__ */ u3("button", { type: "button", title: "Previous (p)", "aria-label": "Previous found", disabled: matches2?.count === 0, onClick: () => step(false), children: "\u2039" }),
        /* @__PURE__ */ u3("button", { type: "button", title: "Next (n)", "aria-label": "Next found", disabled: matches2?.count === 0, onClick: () => step(true), children: "\u203A" }),
        /* @__PURE__ */ u3("output", { class: "muted", title: finder.problem, children: finder.problem !== "" ? "failed" : matches2 === void 0 ? "\u2026" : matches2.count === 0 ? "nothing found" : `${finder.number > 0 ? `${finder.number} of ` : ""}${count(matches2.count)} \xB7 ${duration(matches2.timeNs)}` }),
        find === "" && /* @__PURE__ */ u3("button", { type: "button", class: "plain", "aria-label": "End the search", title: "End the search", onClick: () => seek(""), children: "\xD7" })
      ] })
    ] });
  }

  // src/pages/timeline/words.ts
  var MOMENT = 0.01;
  function traceOf(address) {
    const { run: run2, stage, rank } = address.words;
    return {
      ...run2 === void 0 ? {} : { run: run2 },
      ...stage === void 0 ? {} : { stage },
      ...rank !== void 0 && /^\d{1,15}$/.test(rank) ? { rank: Number(rank) } : {}
    };
  }
  function viewOf(words2, whole2) {
    const [from, to, at] = [nanoseconds(words2["from"]), nanoseconds(words2["to"]), nanoseconds(words2["at"])];
    if (from !== void 0 && to !== void 0 && to > from) {
      return clamped({ begin: from, end: to }, whole2);
    }
    return at === void 0 ? void 0 : clamped({ begin: at - MOMENT * whole2 / 2, end: at + MOMENT * whole2 / 2 }, whole2);
  }
  function stretchOf(words2, whole2) {
    const [begin, end] = (words2["mark"] ?? "").split("-").map(nanoseconds);
    return begin === void 0 || end === void 0 || end <= begin || begin > whole2 ? void 0 : { begin, end: Math.min(end, whole2) };
  }
  function sliceOf(words2, of) {
    const slice = nanoseconds(words2["slice"]);
    return slice === void 0 || slice >= of.slices ? void 0 : slice;
  }
  function wordsOf({ begin, end }, whole2) {
    const [from, to] = [Math.round(begin), Math.round(end)];
    return from <= 0 && to >= whole2 ? { from: "", to: "", at: "" } : { from: String(from), to: String(to), at: "" };
  }
  function nanoseconds(word) {
    return word !== void 0 && /^\d{1,15}$/.test(word) ? Number(word) : void 0;
  }
  function change2(words2, isNew = false) {
    const address = parsed(window.location.hash);
    if (address.page === "timeline" || address.page === "") {
      const next = withWords({ ...address, page: "timeline" }, words2);
      if (next !== window.location.hash) {
        go(next, isNew);
      }
    }
  }
  function placesAt(of, file, line) {
    return new Set(of.places.flatMap((place2, at) => place2.file === file && place2.line === line ? [at] : []));
  }

  // src/pages/timeline/useFinder.ts
  var LIMIT = 1e3;
  function useFinder(of, choice, words2, chosen) {
    const { find = "", file = "", line = "" } = words2;
    const isLine = file !== "" && /^\d+$/.test(line);
    const key = `${find}\0${file}\0${line}`;
    const [from, setFrom] = d2({ key, starts: [] });
    const starts = from.key === key ? from.starts : [];
    const fromNs = starts.at(-1) ?? 0;
    const byText = useAsked(questions.timeline_search, find === "" ? void 0 : { ...choice, text: find, fromNs, limit: LIMIT });
    const byLine = useAsked(questions.timeline_line, isLine && find === "" ? { ...choice, file, line: Number(line), fromNs, limit: LIMIT } : void 0);
    const answered2 = byText ?? byLine;
    const matches2 = answered2?.state === "ready" ? answered2.answer : void 0;
    const sought = T2(() => {
      if (find !== "") {
        return { text: find, places: void 0 };
      }
      return isLine ? { text: "", places: placesAt(of, file, Number(line)) } : void 0;
    }, [key, of]);
    const index = matches2?.found.findIndex(({ slice }) => slice === chosen) ?? -1;
    return {
      title: find !== "" ? `\u201C${find}\u201D` : isLine ? `${file.split(/[/\\]/).at(-1) ?? file}:${line}` : "",
      sought,
      matches: matches2,
      problem: answered2?.state === "failed" ? answered2.message : "",
      number: index >= 0 && starts.length === 0 ? index + 1 : 0,
      step: (forward, _3, ns) => {
        const found2 = matches2?.found ?? [];
        if (index >= 0) {
          const next = found2[index + (forward ? 1 : -1)];
          const last = found2.at(-1);
          if (next === void 0 && forward && found2.length === LIMIT && last !== void 0) {
            setFrom({ key, starts: [...starts, last.startNs] });
          } else if (next === void 0 && !forward && starts.length > 0) {
            setFrom({ key, starts: starts.slice(0, -1) });
          }
          return next ?? (found2.length < LIMIT && starts.length === 0 ? forward ? found2[0] : last : void 0);
        }
        return forward ? found2.find(({ startNs }) => startNs >= ns) ?? found2[0] : found2.findLast(({ endNs }) => endNs <= ns) ?? found2.at(-1);
      }
    };
  }

  // src/pages/timeline/useKeys.ts
  var ZOOM = 1.5;
  var PAN = 0.15;
  function useKeys(stage, done) {
    const latest = A2(done);
    latest.current = done;
    h2(() => {
      if (stage === void 0) {
        return void 0;
      }
      const down = (event) => {
        const action = document.querySelector("dialog[open]") === null ? actionOf(event) : void 0;
        const isElsewhere = event.target instanceof Element && event.target.closest(".stage, .timeline .tools") === null && event.target !== document.body;
        if (action === void 0 || isElsewhere && event.key.startsWith("Arrow")) {
          return;
        }
        event.preventDefault();
        act(stage, action, latest.current, event.repeat);
      };
      const up = (event) => {
        const action = actionOf(event);
        stage.motion.release(action?.type === "hold" ? action.key : void 0);
      };
      const blur = () => stage.motion.release();
      document.addEventListener("keydown", down);
      document.addEventListener("keyup", up);
      window.addEventListener("blur", blur);
      return () => {
        document.removeEventListener("keydown", down);
        document.removeEventListener("keyup", up);
        window.removeEventListener("blur", blur);
      };
    }, [stage]);
  }
  function act(stage, action, done, isRepeated) {
    switch (action.type) {
      case "hold":
        if (!isRepeated) {
          nudge(stage, action.key);
          stage.motion.hold(action.key);
        }
        return;
      case "scroll": {
        stage.scroll(action.by);
        return;
      }
      case "beside": {
        done.choose(action.direction);
        return;
      }
      case "search":
        return document.getElementById("timeline-search")?.focus();
      case "next": {
        done.step(true);
        return;
      }
      case "previous": {
        done.step(false);
        return;
      }
      case "whole":
      case "fit":
      case "mark":
      case "help":
      case "close": {
        done[action.type]();
        return;
      }
    }
  }
  function nudge({ motion, pointerPlace }, key) {
    switch (key) {
      case "in": {
        motion.zoom(1 / ZOOM, pointerPlace);
        return;
      }
      case "out": {
        motion.zoom(ZOOM, pointerPlace);
        return;
      }
      case "left": {
        motion.pan(-PAN);
        return;
      }
      case "right": {
        motion.pan(PAN);
        return;
      }
    }
  }

  // src/pages/timeline/TimelinePage.tsx
  function TimelinePage(props) {
    const choice = traceOf(props.address);
    const key = queryOf(choice);
    const found2 = useAnswer(questions.timeline, choice);
    return /* @__PURE__ */ u3(Answer, { of: found2, children: (of) => of.tracks.length === 0 ? /* @__PURE__ */ u3("p", { class: "muted", children: "This trace has no events in time." }) : /* @__PURE__ */ u3(Explorer, { of, choice, ...props }, `${key} ${of.endNs} ${of.slices}`) });
  }
  function Explorer({ of, choice, address: { words: words2 }, header: header2 }) {
    const source = useSource();
    const whole2 = Math.max(of.endNs, 1);
    const [stage, setStage] = d2();
    const [turned, setTurned] = d2(/* @__PURE__ */ new Set());
    const [filter, setFilter] = d2("");
    const [colouring, colour] = d2("kind");
    const [isMarking, setMarking] = d2(false);
    const [over, setOver] = d2("");
    const chosen = sliceOf(words2, of);
    const stretch = T2(() => stretchOf(words2, whole2), [words2["mark"], whole2]);
    const details = useAsked(questions.timeline_slice, chosen === void 0 ? void 0 : { ...choice, slice: chosen });
    const sums = useAsked(questions.timeline_selection, stretch === void 0 ? void 0 : { ...choice, begin: stretch.begin, end: stretch.end });
    const finder = useFinder(of, choice, words2, chosen);
    const known = details?.state === "ready" && details.answer.slice === chosen ? details.answer : void 0;
    const spot = T2(() => known && { track: known.track, row: known.row, start: known.startNs, end: known.endNs }, [known]);
    const links = T2(() => known?.links.slice(0, 50) ?? [], [known]);
    const found2 = T2(() => finder.matches?.found.map(spotOf) ?? [], [finder.matches]);
    const settled = useSettled(whole2);
    h2(() => {
      const wanted = viewOf(words2, whole2) ?? (words2["from"] === void 0 && words2["at"] === void 0 ? { begin: 0, end: whole2 } : void 0);
      if (stage !== void 0 && wanted !== void 0 && !settled.isOwn(words2)) {
        stage.motion.go(wanted);
      }
    }, [stage, words2["from"], words2["to"], words2["at"]]);
    const turn = (key) => setTurned((before) => toggled(before, key));
    const jump = (to, slice, isNew = true) => {
      const lane = stage?.lanes.find((one) => one.type === "track" && one.track.id === to.track);
      if (stage === void 0) {
        return;
      }
      if (lane === void 0) {
        setFilter("");
      } else if (!lane.isOpen) {
        turn(lane.key);
      }
      const view = revealing(stage.motion.goal, to.start, to.end, whole2);
      settled.keep(stage.motion.goal);
      change2({ slice: String(slice), ...wordsOf(view, whole2) }, isNew);
      stage.motion.go(view);
      settled.own(view);
      window.setTimeout(() => stage.reveal(to));
    };
    const jumpTo = (slice) => {
      asking(source, questions.timeline_slice, { ...choice, slice }).then(
        (one) => jump({ track: one.track, row: one.row, start: one.startNs, end: one.endNs }, slice),
        () => change2({ slice: String(slice) }, true)
      );
    };
    const show = (one) => jump(spotOf(one), one.slice);
    const step = (forward) => {
      const next = finder.step(forward, chosen, stage?.motion.view.begin ?? 0);
      if (next !== void 0) {
        jump(spotOf(next), next.slice, false);
      }
    };
    const seek = (text2) => change2({ find: text2, file: "", line: "" });
    const fit = (to) => {
      if (to !== void 0) {
        stage?.motion.go(around("start" in to ? Number(to.start) : to.begin, to.end, whole2));
      }
    };
    const fitSpot = () => {
      if (spot !== void 0) {
        stage?.motion.go(around(spot.start, spot.end, whole2));
        stage?.reveal(spot);
      } else {
        fit(stretch);
      }
    };
    const mark = (to) => change2({ mark: to === void 0 || to.end <= to.begin ? "" : `${to.begin}-${to.end}` });
    const clicked = (hit) => {
      if (hit !== void 0 && hit.slice < 0) {
        stage?.motion.go(around(hit.start, hit.end, whole2));
      } else {
        change2({ slice: hit === void 0 ? "" : String(hit.slice), ...hit === void 0 ? {} : { mark: "" } });
      }
    };
    const [arrived, setArrived] = d2("");
    const sought = `${words2["file"] ?? ""}:${words2["line"] ?? ""}`;
    const isArriving = words2["file"] !== void 0 && chosen === void 0 && arrived !== sought && finder.matches !== void 0;
    h2(() => {
      const first = finder.matches?.found[0];
      if (isArriving && stage !== void 0) {
        setArrived(sought);
        if (first !== void 0 && words2["from"] === void 0) {
          jump(spotOf(first), first.slice, false);
        }
      }
    }, [isArriving, stage, finder.matches]);
    useKeys(stage, {
      choose: (direction) => {
        const hit = stage?.beside(spot, direction);
        if (hit !== void 0) {
          jump(hit, hit.slice, false);
        }
      },
      whole: () => stage?.motion.go({ begin: 0, end: whole2 }),
      fit: fitSpot,
      mark: () => spot !== void 0 && mark({ begin: spot.start, end: spot.end }),
      step,
      help: () => setOver("help"),
      close: () => stretch !== void 0 ? mark(void 0) : chosen !== void 0 ? change2({ slice: "" }) : seek("")
    });
    const describe = known === void 0 ? "" : `${known.kind} ${known.name}, ${duration(known.endNs - known.startNs)}, at ${exact(known.startNs)}, row ${known.row + 1}`;
    return /* @__PURE__ */ u3("div", { class: "timeline", "data-slices": of.slices, children: [
      /* @__PURE__ */ u3(
        Toolbar,
        {
          finder,
          find: words2["find"] ?? "",
          seek,
          step,
          zoom: (factor) => stage?.motion.zoom(factor, 0.5),
          whole: () => stage?.motion.go({ begin: 0, end: whole2 }),
          isMarking,
          setMarking,
          colouring,
          colour,
          filter,
          setFilter,
          help: () => setOver("help"),
          perfetto: () => setOver("perfetto")
        }
      ),
      /* @__PURE__ */ u3(
        StageView,
        {
          of,
          choice,
          view: viewOf(words2, whole2) ?? { begin: 0, end: whole2 },
          shown: { colouring, sought: finder.sought, chosen: spot, links, found: found2, stretch },
          turned,
          filter,
          isMarking,
          turn,
          made: setStage,
          settled: (view) => settled.told(view),
          clicked,
          marked: mark,
          describe
        }
      ),
      /* @__PURE__ */ u3(
        Panel,
        {
          of,
          choice,
          ranks: choice.rank === void 0 ? header2.ranks : [],
          details: chosen === void 0 ? void 0 : details,
          sums: stretch === void 0 ? void 0 : sums,
          fitSlice: fitSpot,
          fitStretch: () => fit(stretch),
          unmark: () => mark(void 0),
          jump: jumpTo,
          show,
          seek
        }
      ),
      over === "help" && /* @__PURE__ */ u3(Help, { close: () => setOver("") }),
      over === "perfetto" && /* @__PURE__ */ u3(Perfetto, { trace: header2.facts.find(({ label: label2 }) => label2 === "Trace")?.value ?? "TRACE", close: () => setOver("") })
    ] });
  }
  function spotOf({ track: track2, row, startNs, endNs }) {
    return { track: track2, row, start: startNs, end: endNs };
  }
  function toggled(keys, key) {
    const next = new Set(keys);
    if (!next.delete(key)) {
      next.add(key);
    }
    return next;
  }
  var REST_MS = 200;
  function useSettled(whole2) {
    const timer = A2(0);
    const written2 = A2(void 0);
    h2(() => () => window.clearTimeout(timer.current), []);
    const keyOf2 = ({ from = "", to = "" }) => `${from}-${to}`;
    return T2(() => {
      const own = (view) => void (written2.current = keyOf2(wordsOf(view, whole2)));
      const keep = (view) => {
        window.clearTimeout(timer.current);
        own(view);
        change2(wordsOf(view, whole2));
      };
      return {
        told: (view) => {
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => keep(view), REST_MS);
        },
        keep,
        own,
        isOwn: (words2) => words2["at"] === void 0 && written2.current === keyOf2(words2)
      };
    }, [whole2]);
  }

  // src/pages/app/registry.ts
  var PAGES = [
    { id: "overview", title: "Overview", component: OverviewPage },
    { id: "timeline", title: "Timeline", component: TimelinePage, needsServer: true },
    { id: "findings", title: "Findings", component: FindingsPage }
  ];

  // src/pages/app/theme.ts
  var KEY = "deepscope.theme";
  function useTheme() {
    const [theme, setTheme] = d2(remembered);
    h2(() => {
      document.documentElement.dataset["theme"] = theme;
    }, [theme]);
    return [
      theme,
      (chosen) => {
        setTheme(chosen);
        try {
          window.localStorage.setItem(KEY, chosen);
        } catch {
        }
      }
    ];
  }
  function remembered() {
    try {
      const kept3 = window.localStorage.getItem(KEY);
      return kept3 === "light" || kept3 === "dark" ? kept3 : "auto";
    } catch {
      return "auto";
    }
  }

  // src/pages/app/ThemeButton.tsx
  var NEXT = { auto: "light", light: "dark", dark: "auto" };
  var WORDS2 = { auto: "System", light: "Light", dark: "Dark" };
  function ThemeButton() {
    const [theme, choose] = useTheme();
    if (document.body.dataset["door"] === "panel") {
      return null;
    }
    return /* @__PURE__ */ u3("button", { type: "button", class: "theme", title: "Light or dark", "aria-label": `Theme: ${WORDS2[theme]}`, onClick: () => choose(NEXT[theme]), children: WORDS2[theme] });
  }

  // src/pages/app/App.tsx
  function App() {
    const address = useAddress();
    const header2 = useAnswer(questions.header, choiceOf(address), true);
    const answer = header2.state === "ready" ? header2.answer : void 0;
    h2(() => {
      document.title = answer === void 0 ? "DeepScope" : `${answer.title} \xB7 DeepScope`;
    }, [answer]);
    return /* @__PURE__ */ u3("div", { class: "app", children: [
      /* @__PURE__ */ u3("a", { class: "skip", href: "#main", onClick: skipped, children: "Skip to the page" }),
      /* @__PURE__ */ u3(TopBar, { header: answer, address }),
      /* @__PURE__ */ u3(Answer, { of: header2, children: (shown) => /* @__PURE__ */ u3(Body, { header: shown, address }) })
    ] });
  }
  function skipped(event) {
    event.preventDefault();
    document.getElementById("main")?.focus();
  }
  function TopBar({ header: header2, address }) {
    return /* @__PURE__ */ u3("header", { class: "topbar", children: [
      /* @__PURE__ */ u3("a", { class: "brand", href: linkTo(address, "overview"), children: [
        /* @__PURE__ */ u3(Mark, {}),
        /* @__PURE__ */ u3("span", { children: "DeepScope" })
      ] }),
      header2 !== void 0 && /* @__PURE__ */ u3(Pickers, { header: header2, address }),
      /* @__PURE__ */ u3("span", { class: "grow" }),
      header2 !== void 0 && /* @__PURE__ */ u3("span", { class: "device muted", children: header2.device }),
      /* @__PURE__ */ u3(ThemeButton, {})
    ] });
  }
  function Mark() {
    return /* @__PURE__ */ u3("svg", { class: "mark", viewBox: "0 0 20 20", width: "20", height: "20", "aria-hidden": "true", children: [
      /* @__PURE__ */ u3("rect", { x: "1", y: "3", width: "12", height: "3", rx: "1.5" }),
      /* @__PURE__ */ u3("rect", { class: "lit", x: "1", y: "8.5", width: "18", height: "3", rx: "1.5" }),
      /* @__PURE__ */ u3("rect", { x: "1", y: "14", width: "8", height: "3", rx: "1.5" })
    ] });
  }
  function Body({ header: header2, address }) {
    const { isServed } = useSource();
    const pages = PAGES.filter((page) => (page.isThere?.(header2) ?? true) && (isServed || page.needsServer !== true));
    const chosen = pages.find((page) => page.id === address.page) ?? pages[0];
    return /* @__PURE__ */ u3("div", { class: "body", children: [
      /* @__PURE__ */ u3(Navigation, { pages, chosen, address }),
      chosen !== void 0 && /* @__PURE__ */ u3(Shown, { page: chosen, header: header2, address })
    ] });
  }
  function Navigation({ pages, chosen, address }) {
    return /* @__PURE__ */ u3("nav", { class: "pages", "aria-label": "Pages", children: pages.map((page) => /* @__PURE__ */ u3("a", { href: linkTo(address, page.id), ...page === chosen ? { "aria-current": "page" } : {}, children: page.title }, page.id)) });
  }
  function Shown({ page, header: header2, address }) {
    const main = A2(null);
    h2(() => main.current?.scrollTo(0, 0), [page.id]);
    const { component: Component } = page;
    return /* @__PURE__ */ u3("main", { id: "main", class: `page page-${page.id}`, tabIndex: -1, ref: main, children: [
      /* @__PURE__ */ u3("h1", { children: page.title }),
      page.id === "overview" && header2.notes.map((note) => /* @__PURE__ */ u3("p", { class: "note", children: note }, note)),
      /* @__PURE__ */ u3(Boundary, { children: /* @__PURE__ */ u3(Component, { address, header: header2 }) }, page.id)
    ] });
  }

  // src/pages/source/embedded.ts
  var anything = (value) => value;
  var EmbeddedSource = class {
    isServed = false;
    opensCode = false;
    answers;
    /** `data` has each answer under its question's name and words: `overview?`, `file?file=…`. */
    constructor(data) {
      this.answers = read(dictionary(anything), data, "the page's data");
    }
    ask(question, asked) {
      const found2 = this.answers[`${question.name}?${queryOf(asked)}`];
      return found2 === void 0 ? Promise.reject(new FailedError("This is not in the file; deepscope view shows it.")) : Promise.resolve(read(question.answer, found2, question.name));
    }
    open() {
    }
  };

  // src/pages/source/http.ts
  var progress = object({ progress: object({ done: finite, total: finite }) });
  var failure = object({ error: text });
  var HttpSource = class {
    constructor(base, token) {
      this.base = base;
      this.token = token;
    }
    base;
    token;
    isServed = true;
    opensCode = false;
    async ask(question, asked) {
      let reply;
      try {
        reply = await fetch(`${this.base}${question.name}?${queryOf(asked)}`, {
          headers: this.token === "" ? {} : { "X-DeepScope-Token": this.token },
          credentials: "same-origin"
        });
      } catch {
        throw new FailedError("The server does not answer: it was ended, or the connection is gone.");
      }
      return answered(question, reply.status, await reply.json().catch(() => void 0));
    }
    open() {
    }
  };
  function answered(question, status, body) {
    if (status === 202) {
      const told = read(progress, body, "the progress").progress;
      throw new NotYetError(told.done, told.total);
    }
    if (status !== 200) {
      throw new FailedError(readOr(failure, body)?.error ?? `The server answered ${status}.`);
    }
    return read(question.answer, body, `the answer to ${question.name}`);
  }

  // src/pages/main.tsx
  function sourceOf() {
    const own = document.getElementById("answers")?.textContent;
    if (own != null) {
      return new EmbeddedSource(JSON.parse(own));
    }
    return new HttpSource("./api/", new URLSearchParams(window.location.search).get("token") ?? "");
  }
  var root = document.getElementById("root");
  if (root !== null) {
    root.replaceChildren();
    R(
      /* @__PURE__ */ u3(SourceContext.Provider, { value: sourceOf(), children: /* @__PURE__ */ u3(App, {}) }),
      root
    );
  }
})();
